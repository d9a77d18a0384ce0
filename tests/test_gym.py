"""Gymnasium: its own check of our environments, and the same rounds as a simulation plays."""

import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
from gymnasium import spaces  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402

from driftbandit import DOMD, Bernoulli, Circle, Delay, FixedArms, SignFlip, simulate  # noqa: E402
from driftbandit.gym import BanditEnv, GymPlayer  # noqa: E402


@pytest.mark.filterwarnings("ignore:.*Box observation space.*:UserWarning")
def test_gymnasium_accepts_it():
    check_env(BanditEnv(Circle(horizon=30)), skip_render_check=True)


@pytest.mark.parametrize("world", [Circle(horizon=300), SignFlip(horizon=300, arms=FixedArms(7))])
def test_a_player_plays_what_a_simulation_plays(world):
    policy = DOMD(problem=world.problem)
    player = GymPlayer(BanditEnv(world), policy)
    run = simulate(policy, world, seeds=[11])
    np.testing.assert_array_equal(player.play(300, seed=11), run.rewards[0])
    env, total = BanditEnv(world), 0.0
    env.reset(seed=11)
    for choice in run.choices[0]:
        _, _, ended, _, info = env.step(choice)
        total += info["regret"]
    assert ended
    assert total == pytest.approx(run.total[0])
    with pytest.raises(ValueError, match="call reset"):
        env.step(0)


class Weather(gymnasium.Env):
    """Two numbers decide which of three actions pays; episodes of seven steps."""

    observation_space = spaces.Box(np.array([0.0, -5.0]), np.array([10.0, 5.0]), dtype=np.float64)
    action_space = spaces.Discrete(3, start=1)

    def _seen(self):
        self.now = self.np_random.uniform(self.observation_space.low, self.observation_space.high)
        return self.now

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 7
        return self._seen(), {}

    def step(self, action):
        best = 1 if self.now[0] > 5 else 2 if self.now[1] > 0 else 3
        reward = float(self.np_random.random() < (0.9 if action == best else 0.2))
        self.left -= 1
        return self._seen(), reward, self.left == 0, False, {}


def test_a_bandit_learns_any_contextual_environment():
    player = GymPlayer(Weather(), family=Bernoulli())
    rewards = player.play(1500, seed=5)
    assert rewards[-500:].mean() > 0.7  # 0.43 by chance, 0.9 at best
    again = GymPlayer(Weather(), family=Bernoulli())
    np.testing.assert_array_equal(rewards[:200], again.play(200, seed=5))


def test_what_it_cannot_play_is_said():
    with pytest.raises(ValueError, match="leave delay out"):
        BanditEnv(Circle(delay=Delay(mean=5)))
    wild = Weather()
    wild.observation_space = spaces.Box(-np.inf, np.inf, (2,))
    with pytest.raises(ValueError, match="RescaleObservation"):
        GymPlayer(wild)
    wild.action_space = spaces.Box(0, 1, (2,))
    with pytest.raises(ValueError, match="Discrete action space"):
        GymPlayer(wild)


def test_without_gymnasium_the_package_works_and_names_the_remedy():
    program = """
import sys
sys.modules["gymnasium"] = None
import driftbandit
try:
    import driftbandit.gym
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "driftbandit.gym needs gymnasium: pip install 'driftbandit[gym]'\n"
