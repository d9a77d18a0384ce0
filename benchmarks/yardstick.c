/* One round of DOMD in plain C: what the machine allows, for the speed figures.
 *
 * The arithmetic of `choose` and `learn` in src/driftbandit/policies/domd.py for the logistic link
 * and a constant bonus, any dimension; no input checks, no lock. A learner is one row:
 * theta (d), H (d x d). Scratch of 3 d^2 + BLOCK d numbers belongs to the caller.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EPS 0x1p-52
#define BLOCK 32

typedef struct {
    int64_t d;
    double S, gamma, lam, eta, bonus;
} Params;

static double dot(int64_t d, const double *x, const double *y) {
    double total = 0.0;
    for (int64_t j = 0; j < d; j++) total += x[j] * y[j];
    return total;
}

/* A = L D L': F holds L below its diagonal and 1/D on it. */
static void factor(int64_t d, const double *A, double *F) {
    for (int64_t j = 0; j < d; j++) {
        double pivot = A[j * d + j];
        for (int64_t k = 0; k < j; k++)
            F[j * d + k] = A[j * d + k] - dot(k, F + j * d, F + k * d);
        for (int64_t k = 0; k < j; k++) {
            double scaled = F[j * d + k] * F[k * d + k];
            pivot -= scaled * F[j * d + k];
            F[j * d + k] = scaled;
        }
        F[j * d + j] = 1.0 / pivot;
    }
}

/* u = A^-1 b. */
static void solve(int64_t d, const double *F, const double *b, double *u) {
    for (int64_t j = 0; j < d; j++) u[j] = b[j] - dot(j, F + j * d, u);
    for (int64_t j = d - 1; j >= 0; j--) {
        double total = u[j] * F[j * d + j];
        for (int64_t k = j + 1; k < d; k++) total -= F[k * d + j] * u[k];
        u[j] = total;
    }
}

/* W = D^-1/2 L^-1, lower half: ||x||_{A^-1} = ||W x||. */
static void whiten(int64_t d, const double *F, double *W) {
    for (int64_t j = 0; j < d; j++) {
        W[j * d + j] = 1.0;
        for (int64_t k = 0; k < j; k++) {
            double total = F[j * d + k];
            for (int64_t q = k + 1; q < j; q++) total += F[j * d + q] * W[q * d + k];
            W[j * d + k] = -total;
        }
    }
    for (int64_t j = 0; j < d; j++) {
        double root = sqrt(F[j * d + j]);
        for (int64_t k = 0; k <= j; k++) W[j * d + k] *= root;
    }
}

static void add_outer(int64_t d, double *A, double w, const double *x) {
    for (int64_t j = 0; j < d; j++)
        for (int64_t k = 0; k < d; k++) A[j * d + k] += w * (x[j] * x[k]);
}

/* A block of arms is turned on its side first: vector instructions then work across arms. */
static int64_t choose_one(const Params *p, const double *theta, const double *H,
                          const double *arms, int64_t count, double *scratch) {
    int64_t d = p->d, best = 0;
    double *F = scratch, *W = F + d * d, *X = W + d * d, top = -INFINITY;
    factor(d, H, F);
    whiten(d, F, W);
    for (int64_t start = 0; start < count; start += BLOCK) {
        double mean[BLOCK] = {0}, square[BLOCK] = {0}, y[BLOCK];
        int64_t size = count - start < BLOCK ? count - start : BLOCK;
        for (int64_t a = 0; a < size; a++)
            for (int64_t j = 0; j < d; j++) X[j * BLOCK + a] = arms[(start + a) * d + j];
        for (int64_t j = 0; j < d; j++) {
            for (int64_t a = 0; a < BLOCK; a++) y[a] = 0.0;
            for (int64_t k = 0; k <= j; k++)
                for (int64_t a = 0; a < BLOCK; a++) y[a] += W[j * d + k] * X[k * BLOCK + a];
            for (int64_t a = 0; a < BLOCK; a++) square[a] += y[a] * y[a];
            for (int64_t a = 0; a < BLOCK; a++) mean[a] += theta[j] * X[j * BLOCK + a];
        }
        for (int64_t a = 0; a < BLOCK; a++) mean[a] += p->bonus * sqrt(square[a]);
        for (int64_t a = 0; a < size; a++)
            if (mean[a] > top) best = start + a, top = mean[a];
    }
    return best;
}

/* argmin (v - zeta)' A (v - zeta) over ||v|| <= S, by Newton's method on 1/S - 1/||v(nu)||. */
static void project(int64_t d, const double *A, double *zeta, double S, double *scratch) {
    double *shifted = scratch, *F = scratch + d * d;
    double *b = scratch + 2 * d * d, *y = b + d;
    double size = sqrt(dot(d, zeta, zeta)), nu = 0.0;
    for (int64_t j = 0; j < d; j++) b[j] = dot(d, A + j * d, zeta);
    memcpy(shifted, A, sizeof(double) * d * d);
    for (int round = 0; round < 100 && size > S * (1.0 + 1e-14); round++) {
        for (int64_t j = 0; j < d; j++) shifted[j * d + j] = A[j * d + j] + nu;
        factor(d, shifted, F);
        solve(d, F, b, zeta);
        size = sqrt(dot(d, zeta, zeta));
        double square = 0.0; /* zeta' (A + nu I)^-1 zeta */
        for (int64_t j = 0; j < d; j++) {
            y[j] = zeta[j] - dot(j, F + j * d, y);
            square += y[j] * y[j] * F[j * d + j];
        }
        double step = size * size / square * (size - S) / S;
        if (nu + step <= nu) break;
        nu += step;
    }
    double shrink = fmin(1.0, S / size * (1.0 - 0x1p-50));
    for (int64_t j = 0; j < d; j++) zeta[j] *= shrink;
}

static double slope(double z) {
    double e = exp(-fabs(z));
    return e / ((1.0 + e) * (1.0 + e));
}

static void learn_one(const Params *p, double *theta, double *A, const double *x, double r,
                      double *scratch) {
    int64_t d = p->d;
    double *F = scratch, *u = scratch + 3 * d * d + 2 * d, trace = 0.0;
    if (p->gamma != 1.0) { /* A = gamma H + (1 - gamma) lambda I, its rounding made good */
        for (int64_t j = 0; j < d; j++) trace += A[j * d + j];
        for (int64_t j = 0; j < d * d; j++) A[j] *= p->gamma;
        for (int64_t j = 0; j < d; j++) A[j * d + j] += (1.0 - p->gamma) * p->lam + EPS * trace;
    }
    factor(d, A, F);
    solve(d, F, x, u);
    double z = dot(d, x, theta), e = exp(-fabs(z));
    double mean = (z >= 0.0 ? 1.0 : e) / (1.0 + e), w = p->eta * (e / ((1.0 + e) * (1.0 + e)));
    double step = p->eta * (mean - r) / (1.0 + w * dot(d, x, u));
    for (int64_t j = 0; j < d; j++) theta[j] -= step * u[j];
    if (dot(d, theta, theta) > p->S * p->S) {
        memcpy(F, A, sizeof(double) * d * d);
        add_outer(d, F, w, x);
        project(d, F, theta, p->S, scratch + d * d);
    }
    add_outer(d, A, slope(dot(d, x, theta)), x);
}

/* One learner a call; a learner is theta, H and its scratch in one piece. */

int64_t choose(const Params *p, double *learner, const double *arms, int64_t count) {
    int64_t d = p->d;
    return choose_one(p, learner, learner + d, arms, count, learner + d + d * d);
}

void learn(const Params *p, double *learner, const double *x, double r) {
    int64_t d = p->d;
    learn_one(p, learner, learner + d, x, r, learner + d + d * d);
}

/* n learners a call: theta (n, d), H (n, d, d), arms (n, count, d), x (n, d), r (n). */

void choose_all(const Params *p, int64_t n, double *theta, double *H, const double *arms,
                int64_t count, int64_t *out) {
    int64_t d = p->d;
#pragma omp parallel
    {
        double *scratch = malloc(sizeof(double) * (3 * d * d + BLOCK * d));
#pragma omp for schedule(dynamic, 256)
        for (int64_t i = 0; i < n; i++)
            out[i] = choose_one(p, theta + i * d, H + i * d * d, arms + i * count * d, count,
                                scratch);
        free(scratch);
    }
}

void learn_all(const Params *p, int64_t n, double *theta, double *H, const double *x,
               const double *r) {
    int64_t d = p->d;
#pragma omp parallel
    {
        double *scratch = malloc(sizeof(double) * (3 * d * d + BLOCK * d));
#pragma omp for schedule(dynamic, 256)
        for (int64_t i = 0; i < n; i++)
            learn_one(p, theta + i * d, H + i * d * d, x + i * d, r[i], scratch);
        free(scratch);
    }
}
