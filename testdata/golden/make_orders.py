"""Golden vectors at orders that no double holds, near 1 and far from it: `python3 make_orders.py` writes `*_orders.json` beside itself.

Needs mpmath. Everything is computed from the definitions with 60 digits; nothing here is taken from paygo.
"""

import json
import pathlib

from mpmath import mp, mpf, exp, expm1, log, log1p, sqrt, pi, quad, linspace, nstr

mp.dps = 60
ORDERS = ["1.0001", "1.003", "1.01", "1.1", "1.7", "2.3", "5.7", "33.3", "123.456", "1000.1"]
HERE = pathlib.Path(__file__).parent


def text(x):
    return "inf" if x == mp.inf else nstr(x, 40, strip_zeros=False, min_fixed=-30, max_fixed=40)


def write(family, about, cases):
    cases = [
        {"id": f"{family}-{i:04}", "kind": kind, "inputs": inputs, "outputs": outputs, "tags": tags}
        for i, (kind, inputs, outputs, tags) in enumerate(cases)
    ]
    document = {"family": family, "about": about, "cases": cases}
    (HERE / f"{family}.json").write_text(json.dumps(document, indent=1) + "\n")
    print(family, len(cases))


def edge(f, lo, hi, rounds=230):
    """Where the increasing f crosses zero."""
    lo, hi = mpf(lo), mpf(hi)
    for _ in range(rounds):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if f(middle) < 0 else (lo, middle)
    return (lo + hi) / 2


# Divergences.

def gaussian(s, a):
    return a / (2 * s**2)


def laplace(scale, a):
    b = 1 / scale
    return log(a / (2 * a - 1) * exp((a - 1) * b) + (a - 1) / (2 * a - 1) * exp(-a * b)) / (a - 1)


def randomized_response(e, a):
    p = 1 / (1 + exp(-e))
    return log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


def sampled_gaussian(q, s, a):
    """Both directions: mixture against base, and base against mixture."""
    def density(x):
        return exp(-x * x / (2 * s * s)) / (s * sqrt(2 * pi))

    def ratio(x):
        return 1 - q + q * exp((2 * x - 1) / (2 * s * s))

    top = a + 18 * s
    pieces = linspace(-18 * s, top, int(8 + (top + 18 * s) / s))
    forward = quad(lambda x: density(x) * ratio(x) ** a, pieces)
    reverse = quad(lambda x: density(x) * ratio(x) ** (1 - a), pieces)
    return log(forward) / (a - 1), log(reverse) / (a - 1)


def basic_cases():
    for a in ORDERS:
        x = mpf(a)
        for s in ["0.7", "5"]:
            yield "gaussian", {"sensitivity": "1", "sigma": s, "alpha": a}, {"rdp": text(gaussian(mpf(s), x))}, []
        for b in ["0.7", "20"]:
            yield "laplace", {"scale": b, "alpha": a}, {"rdp": text(laplace(mpf(b), x))}, []
        for e in ["0.1", "2"]:
            yield "randomized_response", {"eps": e, "alpha": a}, {"rdp": text(randomized_response(mpf(e), x))}, []


def sampled_cases():
    for a in ORDERS[:-2]:
        for q, s in [("0.01", "1"), ("0.2", "4")]:
            forward, reverse = sampled_gaussian(mpf(q), mpf(s), mpf(a))
            yield "fractional", {"q": q, "sigma": s, "alpha": a}, {"forward": text(forward), "reverse": text(reverse)}, []


# From one Rényi statement to (epsilon, delta).

def log_zeta(a):
    return (a - 1) * log1p(-1 / a) - log(a)


def classic(a, gamma, delta):
    return gamma - log(delta) / (a - 1)


def cks(a, gamma, delta):
    return max(gamma + (log_zeta(a) - log(delta)) / (a - 1), mpf(0))


def lemma1(a, gamma, delta):
    if a * delta >= 1:
        return max(gamma + log1p(-delta), mpf(0))
    return min(cks(a, gamma, delta), log1p(expm1((a - 1) * gamma) / (a * delta)) / (a - 1))


def largest_gamma(a, e, delta):
    """The least divergence of a two-point pair that just fails (e, delta)."""
    if a * delta >= 1:
        return e - log1p(-delta)
    b, decay = a - 1, exp(-e)

    def point(v):
        above = (1 - a * delta) / (1 + exp(-v))
        rest = (1 - a * delta) / (1 + exp(v))
        u = b * delta + above
        r = u * decay
        return above, u, delta + u, r, rest, rest + delta + u * (1 - decay)

    def slope(v):
        # The sign of F', as a difference of logarithms: almost straight in v.
        above, u, p, r, p2, r2 = point(v)
        return b * log(p / r) + log(above) - log(u) - b * log(p2 / r2) - log(a - b * decay * p2 / r2)

    # A few digits by halves, the rest by secants; the minimum is flat, so an error here counts squared.
    with mp.workdps(20):
        near = edge(slope, -600, 40, 60)
    x, y = near, near + mpf(10) ** -9
    f, g = slope(x), slope(y)
    for _ in range(12):
        if g == f or abs(y - x) < mpf(10) ** -40:
            break
        x, f, y = y, g, y - g * (y - x) / (g - f)
        g = slope(y)
    _, _, p, r, p2, r2 = point(y)
    return log(p**a * r ** (1 - a) + p2**a * r2 ** (1 - a)) / b


def secant(f, lo, hi):
    """Where the increasing f crosses zero, in fewer steps than by halves."""
    lo, hi = mpf(lo), mpf(hi)
    f_lo, f_hi = f(lo), f(hi)
    if f_lo >= 0:
        return lo
    side = 0
    for _ in range(80):
        x = hi - f_hi * (hi - lo) / (f_hi - f_lo)
        y = f(x)
        if abs(y) < mpf(10) ** -45 or hi - lo < mpf(10) ** -45 * abs(hi):
            return x
        if y < 0:
            lo, f_lo = x, y
            f_hi = f_hi / 2 if side < 0 else f_hi
            side = -1
        else:
            hi, f_hi = x, y
            f_lo = f_lo / 2 if side > 0 else f_lo
            side = 1
    raise ArithmeticError("no root")


def exact_epsilon(a, gamma, delta):
    top = lemma1(a, gamma, delta)
    if top == 0 or a * delta >= 1:
        return top
    return secant(lambda e: largest_gamma(a, e, delta) - gamma, 0, top * (1 + mpf(10) ** -20))


def exact_delta(a, gamma, e, most):
    def gap(x):
        return largest_gamma(a, e, exp(x)) - gamma

    lo, hi = mpf(-700), log(min(most, (1 - mpf(10) ** -30) / a))
    for _ in range(16):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if gap(middle) < 0 else (lo, middle)
    return exp(secant(gap, lo, hi))


def conversion_cases():
    for a in ORDERS:
        x = mpf(a)
        for gamma, delta in [("0.01", "1e-3"), ("0.5", "1e-3"), ("3", "0.01")]:
            g, d = mpf(gamma), mpf(delta)
            outputs = {
                "eps_classic": text(classic(x, g, d)),
                "eps_cks": text(cks(x, g, d)),
                "eps_lemma1": text(lemma1(x, g, d)),
                "eps_exact": text(exact_epsilon(x, g, d)),
            }
            yield "eps_of_delta", {"alpha": a, "gamma": gamma, "delta": delta}, outputs, []
        for gamma, eps in [("0.05", "0.5"), ("0.4", "1.3")]:
            g, e = mpf(gamma), mpf(eps)
            c = exp((x - 1) * (g - e))
            k = min(exp(log_zeta(x)) * c, mpf(1))
            if k > mpf(10) ** -25:
                outputs = {"delta_classic": text(min(c, mpf(1))), "delta_cks": text(k), "delta_exact": text(exact_delta(x, g, e, k))}
                yield "delta_of_eps", {"alpha": a, "gamma": gamma, "eps": eps}, outputs, []
        for eps, delta in [("0", "1e-2"), ("0.7", "1e-5"), ("2", "0.1")]:
            truth = largest_gamma(x, mpf(eps), mpf(delta))
            yield "gamma_of_eps_delta", {"alpha": a, "eps": eps, "delta": delta}, {"gamma_exact": text(truth)}, []
    # A curve: its best order is one of the list.
    for steps, s, delta in [("100", "20", "1e-5"), ("3", "40", "0.01"), ("100", "0.5", "1e-5")]:
        outputs = {}
        for name, convert in [("classic", classic), ("cks", cks), ("lemma1", lemma1), ("exact", exact_epsilon)]:
            values = [(convert(mpf(a), int(steps) * gaussian(mpf(s), mpf(a)), mpf(delta)), a) for a in ORDERS]
            outputs[f"eps_{name}"], outputs[f"order_{name}"] = text(min(values)[0]), min(values)[1]
        inputs = {"mechanism": {"type": "gaussian", "steps": steps, "sigma": s}, "orders": ORDERS, "delta": delta}
        yield "curve", inputs, outputs, ["chosen_orders"]


def limited_cases():
    for u in ORDERS[2:]:
        for rho, delta in [("0.01", "1e-5"), ("2", "0.01")]:
            r, l, x = mpf(rho), -log(mpf(delta)), mpf(u)
            inside = l <= r * (x - 1) ** 2
            eps = r + 2 * sqrt(r * l) if inside else r * x + l / (x - 1)
            yield "limited_order", {"rho_hat": rho, "u": u, "delta": delta}, {"eps": text(eps), "branch": "1" if inside else "2"}, []


# Filters and odometers over such orders.

LISTS = [ORDERS, ["1.003", "1.3", "2.7", "9.1"], ["3.3", "7.9", "19.7", "41.3"]]


def divergence(query, a):
    if query["type"] == "gaussian":
        return gaussian(mpf(query["sigma"]), a)
    return randomized_response(mpf(query["eps"]), a)


def needed_delta(e, orders, sums):
    """The least delta at which the mixture certifies e."""
    w = mpf(1) / len(orders)

    def h(u):
        return sum(w * exp((a - 1) * (u - s)) for a, s in zip(orders, sums))

    def falls(u):
        # d/du of ln((1 - e^(e-u))/h(u)), negated.
        rise = sum(w * (a - 1) * exp((a - 1) * (u - s)) for a, s in zip(orders, sums)) / h(u)
        return rise - exp(e - u) / -expm1(e - u)

    u = e + exp(edge(lambda y: falls(e + exp(y)), -100, 12))
    return -expm1(e - u) / h(u)


def filter_cases():
    queries = [{"type": "gaussian", "sigma": "7"}, {"type": "randomized_response", "eps": "0.1"}, {"type": "gaussian", "sigma": "13"}] * 6
    for names in LISTS:
        orders = [mpf(a) for a in names]
        for eps, delta in [("1.3", "1e-5"), ("0.6", "0.01")]:
            e, d = mpf(eps), mpf(delta)
            share = d / len(orders)

            def run(allows):
                sums, decisions, margins = [mpf(0)] * len(orders), [], []
                for query in queries:
                    new = [s + divergence(query, a) for s, a in zip(sums, orders)]
                    ok, margin = allows(new)
                    assert margin is None or abs(margin) > 1e-8
                    decisions.append(ok)
                    margins.append(margin)
                    sums = new if ok else sums
                return decisions, margins, [text(s) for s in sums]

            inputs = {"eps": eps, "delta": delta, "orders": names, "queries": queries}
            for kind, offset in [("curve_union_classic", lambda a: mpf(0)), ("curve_union_cks", log_zeta)]:
                budgets = [e + (log(share) - offset(a)) / (a - 1) for a in orders]
                decisions, _, totals = run(lambda sums: (any(s <= b for s, b in zip(sums, budgets)), None))
                yield kind, inputs, {"budgets": [text(b) for b in budgets], "decisions": decisions, "totals": totals}, ["chosen_orders"]

            def mixture(sums):
                margin = log(d) - log(needed_delta(e, orders, sums))
                return margin >= 0, margin

            decisions, margins, totals = run(mixture)
            outputs = {"decisions": decisions, "log_margins": [text(m) for m in margins], "totals": totals}
            yield "curve_mixture_hockey_stick", inputs, outputs, ["chosen_orders"]


def odometer_cases():
    runs = [{"repeat": "1", "type": "gaussian", "sigma": "7"}, {"repeat": "30", "type": "gaussian", "sigma": "7"},
            {"repeat": "5", "type": "randomized_response", "eps": "0.3"}]
    for names in LISTS:
        orders = [mpf(a) for a in names]
        for delta in ["1e-5", "0.01"]:
            d, n = mpf(delta), len(orders)
            sums = [mpf(0)] * n
            outputs = {"ville_union": [], "ville_mixture": [], "ville_fixed_order_8_or_last": []}
            for run in runs:
                sums = [s + int(run["repeat"]) * divergence(run, a) for s, a in zip(sums, orders)]
                each = [s - log(d / n) / (a - 1) for s, a in zip(sums, orders)]
                outputs["ville_union"].append(text(min(each)))
                h = lambda u: log(d / n * sum(exp((a - 1) * (u - s)) for s, a in zip(sums, orders)))
                outputs["ville_mixture"].append(text(edge(h, 0, min(each))))
                outputs["ville_fixed_order_8_or_last"].append(text(sums[-1] - log(d) / (orders[-1] - 1)))
            yield "rdp", {"delta": delta, "orders": names, "runs": runs}, outputs, ["chosen_orders"]


if __name__ == "__main__":
    write("rdp_basic_orders", "rdp_basic at orders that no double holds", basic_cases())
    write("limited_order_orders", "limited_order at orders that no double holds", limited_cases())
    write("odometers_orders", "odometers over orders that no double holds", odometer_cases())
    write("filters_orders", "filters over orders that no double holds", filter_cases())
    write("rdp_to_dp_orders", "rdp_to_dp at orders that no double holds", conversion_cases())
    write("rdp_sampled_gaussian_orders", "rdp_sampled_gaussian at orders that no double holds", sampled_cases())
