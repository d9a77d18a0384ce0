// A policy for `driftbandit referee` in JavaScript: stochastic gradient steps and 5 % exploration.
import { createInterface } from "node:readline";

let theta = null;
let x = null;
const dot = (a, b) => a.reduce((sum, value, k) => sum + value * b[k], 0);

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.arms) {
    theta ??= message.arms[0].map(() => 0);
    const values = message.arms.map((arm) => dot(arm, theta));
    const best = values.indexOf(Math.max(...values));
    const explore = Math.random() < 0.05;
    const arm = explore ? Math.floor(Math.random() * values.length) : best;
    x = message.arms[arm];
    process.stdout.write(JSON.stringify({ arm }) + "\n");
  } else {
    const error = message.reward - 1 / (1 + Math.exp(-dot(x, theta)));
    theta = theta.map((value, k) => value + 0.3 * error * x[k]);
  }
}
