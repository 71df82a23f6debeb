"""Golden vectors for every word of a mechanism: `python3 make_mechanisms.py` writes `mechanisms.json` beside itself.

Needs mpmath. Everything is computed from the definitions in `docs/theory` with 60 digits; nothing here is taken from paygo.
A new mechanism gets a function and its lines in CASES.
"""

from mpmath import mp, mpf, exp, log, sqrt, pi, quad, linspace, tanh, factorial

from make_orders import gaussian, laplace, randomized_response, sampled_gaussian, text, write

mp.dps = 60


def fixed_size(fraction, s, a):
    """T43: one and the mean of z^a + z^(1-a) - 1 - z where z > 1, z = 1 - f + f e^y."""
    def integrand(x):
        z = 1 - fraction + fraction * exp((2 * x - 1) / (2 * s * s))
        return exp(-x * x / (2 * s * s)) / (s * sqrt(2 * pi)) * (z**a + z ** (1 - a) - 1 - z)

    top = a + 18 * s
    return log(1 + quad(integrand, linspace(mpf(1) / 2, top, int(8 + top / s)))) / (a - 1)


def balls_and_bins(batches, s, a):
    """T44, forward at an integer order: a multinomial mean, from the power series of one batch; and the reverse bound."""
    n = int(a)
    one = [exp(k * (k - 1) / (2 * s * s)) / factorial(k) for k in range(n + 1)]
    power = [mpf(1)] + [mpf(0)] * n
    for _ in range(batches):
        power = [sum(power[i] * one[k - i] for i in range(k + 1)) for k in range(n + 1)]
    forward = log(factorial(n) * power[n] / mpf(batches) ** n) / (a - 1)
    return min(max(forward, 1 / (2 * s * s) + (a - 1) / (2 * s * s * batches)), a / (2 * s * s))


def partitioned_uniform(noise, a):
    return log(sum(exp(a * (a - 1) / (2 * s * s)) for s in noise) / len(noise)) / (a - 1)


def pure_rho(e):
    return e * tanh(e / 2)


def chord(points, a):
    (x, u), (y, v) = [pair for pair in zip(points, points[1:]) if pair[0][0] <= a <= pair[1][0]][0]
    return ((x - 1) * u * (y - a) + (y - 1) * v * (a - x)) / (y - x) / (a - 1)


def cases():
    def case(word, fields, order, rdp, more=None, tags=()):
        outputs = {"rdp": text(rdp)} | {name: text(value) for name, value in (more or {}).items()}
        return word, {"mechanism": {word: fields}, "order": order}, outputs, list(tags)

    for order in ["1.25", "2", "7.5", "33", "257"]:
        a = mpf(order)
        for s in ["0.75", "20"]:
            n = mpf(s)
            yield case("gaussian", {"noise_multiplier": s}, order, gaussian(n, a), {"rho": 1 / (2 * n * n), "mu": 1 / n})
            yield case("gaussian", {"noise_std": str(3 * float(s)), "l2_sensitivity": "3"}, order, gaussian(n, a))
        for b in ["0.5", "12.5"]:
            yield case("laplace", {"scale": b}, order, laplace(mpf(b), a), {"epsilon": 1 / mpf(b), "rho": pure_rho(1 / mpf(b))})
        for e in ["0.05", "1.5"]:
            x = mpf(e)
            response, own = randomized_response(x, a), {"epsilon": x, "rho": pure_rho(x)}
            yield case("randomized_response", {"epsilon": e}, order, response, own)
            yield case("pure", {"epsilon": e}, order, response, own)
            yield case("approximate", {"epsilon": e, "delta": "1e-7"}, order, response, own | {"delta": mpf("1e-7")})
            yield case("exponential", {"epsilon": e}, order, min(response, a * x * x / 8), {"epsilon": x, "rho": x * x / 8})
        yield case("zcdp", {"rho": "0.03"}, order, a * mpf("0.03"), {"rho": mpf("0.03")})
        yield case("gdp", {"mu": "0.3"}, order, a * mpf("0.3") ** 2 / 2, {"mu": mpf("0.3"), "rho": mpf("0.3") ** 2 / 2})
        noise = ["4", "5", "6.5"]
        worst = a / 32
        yield case("partitioned_epoch", {"noise_multipliers": noise}, order, worst, {"rho": mpf(1) / 32, "mu": mpf(1) / 4})
        uniform = {"noise_multipliers": noise, "assignment": "independent-uniform"}
        yield case("partitioned_epoch", uniform, order, partitioned_uniform([mpf(s) for s in noise], a))
    for order in ["1.25", "2", "7.5", "33"]:
        for q, s in [("0.001", "0.7"), ("0.05", "3")]:
            forward, _ = sampled_gaussian(mpf(q), mpf(s), mpf(order))
            yield case("poisson_sampled_gaussian", {"sampling_probability": q, "noise_multiplier": s}, order, forward)
    for order in ["2", "5", "16"]:
        for f, s in [("0.01", "2"), ("0.3", "6")]:
            bound = fixed_size(mpf(f), mpf(s), mpf(order))
            yield case("fixed_size_sampled_gaussian", {"batch_fraction": f, "noise_multiplier": s}, order, bound, tags=["within 2e-4"])
        for batches, s in [(10, "1.5"), (100, "6")]:
            fields = {"batches": batches, "noise_multiplier": s}
            bound = balls_and_bins(batches, mpf(s), mpf(order))
            yield case("balls_and_bins_epoch", fields, order, bound, {"mu": 1 / mpf(s)})
    points = [(mpf(2), mpf("0.1")), (mpf(4), mpf("0.25")), (mpf(8), mpf("0.5"))]
    curve = {"orders": ["2", "4", "8"], "values": ["0.1", "0.25", "0.5"]}
    for order, value in [("1.5", mpf("0.1")), ("4", mpf("0.25")), ("5.5", chord(points, mpf("5.5")))]:
        yield case("renyi", curve, order, value)


if __name__ == "__main__":
    write("mechanisms", "every word of a mechanism as it is written on the wire: its Renyi divergence, and what else is known of it", cases())
