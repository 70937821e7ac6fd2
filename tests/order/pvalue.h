/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pvalue.h - how likely a statistic is if chance alone made it, and Holm's verdict over many
 *
 * All are two-sided except Kolmogorov's: counts that are too even are as suspicious as counts that
 * are too uneven. Good to a few digits, and to a factor of two far out in the tails; a verdict
 * needs no more.
 */
#ifndef TESTS_ORDER_PVALUE_H
#define TESTS_ORDER_PVALUE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline double p_two_sided(double lower, double upper)
{
	double p = 2 * (lower < upper ? lower : upper);

	return p > 1 ? 1 : p < 0 ? 0 : p;
}

static inline double p_normal(double z)
{
	return erfc(fabs(z) / sqrt(2));
}

/* The regularised incomplete gamma function P(a, x); *upper becomes 1 - P without cancellation. */
static inline double gamma_lower(double a, double x, double *upper)
{
	double front = exp(a * log(x) - x - lgamma(a)), sum = 1 / a, term = sum, b, c, d, h;

	if (x <= 0) {
		*upper = 1;
		return 0;
	}
	if (x < a + 1) { /* the power series */
		for (double k = a + 1; term > sum * 1e-15; k++)
			sum += term *= x / k;
		*upper = 1 - sum * front;
		return sum * front;
	}
	b = x + 1 - a; /* the continued fraction, by Lentz's method */
	c = 1e300;
	h = d = 1 / b;
	for (int i = 1; i < 100000; i++) {
		double an = -i * (i - a), step;

		b += 2;
		d = 1 / (an * d + b);
		c = b + an / c;
		step = c * d;
		h *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	*upper = front * h;
	return 1 - *upper;
}

static inline double p_chi_square(double x, double freedom)
{
	double upper, lower;

	if (freedom > 5000) { /* Wilson and Hilferty */
		double v = 2 / (9 * freedom);

		return p_normal((cbrt(x / freedom) - (1 - v)) / sqrt(v));
	}
	lower = gamma_lower(freedom / 2, x / 2, &upper);
	return p_two_sided(lower, upper);
}

static inline double p_poisson(double count, double mean)
{
	double at_most, at_least = 1, unused;

	gamma_lower(count + 1, mean, &at_most);
	if (count > 0)
		at_least = gamma_lower(count, mean, &unused);
	return p_two_sided(at_most, at_least);
}

/* Kolmogorov and Smirnov: d is the largest distance between the two distribution functions. */
static inline double p_kolmogorov(double d, double samples)
{
	double root = sqrt(samples), x = (root + 0.12 + 0.11 / root) * d, sum = 0;

	if (x < 0.3)
		return 1;
	for (int k = 1; k < 100; k++)
		sum += (k % 2 ? 2 : -2) * exp(-2.0 * k * k * x * x);
	return sum > 1 ? 1 : sum < 0 ? 0 : sum;
}

/*
 * Sorted upwards, the first k for which p[k] is above level / (count - k) ends what is rejected:
 * returns that k.
 */
static inline size_t holm_rejected(const double *sorted, size_t count, double level)
{
	size_t k = 0;

	while (k < count && !(sorted[k] > level / (double)(count - k)))
		k++;
	return k;
}

#endif
