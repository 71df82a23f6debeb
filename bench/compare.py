"""paygo and its peers on the same tasks, one after another on the same machine.

    python3 -m venv bench/.venv
    bench/.venv/bin/pip install -r bench/requirements.txt
    bench/.venv/bin/python bench/compare.py > bench/results.md
    bench/.venv/bin/python bench/compare.py --only loss      # one section: plans by their privacy loss
    bench/.venv/bin/python bench/compare.py --only clock     # one section: the clock, and a law that grows; no peers
    bench/.venv/bin/python bench/compare.py --only people    # one section: columns of people, 4 GB, a C compiler

Each time is the least of several runs: what else the machine does only ever adds. Ratios are what counts.
"""

import argparse
import ctypes
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("OMP_NUM_THREADS", "1")

Q, NOISE, STEPS, DELTA, TARGET = 256 / 60000, 1.1, 14062, 1e-5, 3.0
PEOPLE, THREADS = 10**8, 2
# Rounds, and the budget in units of costs below 2^24: two costs of up to a whole budget; a hundred of about a 64th.
EXACTNESS = ((2, 2**24), (100, 2**29))


def timed(task, repeats):
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = task()
        best = min(best, time.perf_counter() - start)
    return best, result


def schedule_step(i, steps):
    share = i / steps
    return 0.005 + 0.01 * share, 0.9 + share


def ours(*tasks):
    command = ["cargo", "run", "--release", "--quiet", "--example", "side_by_side", "--", *tasks]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def dp_accounting_rows():
    import dp_accounting
    from dp_accounting import pld, rdp

    def event(q, noise):
        return dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(noise))

    def epsilon(make, noise=NOISE):
        accountant = make()
        accountant.compose(event(Q, noise), STEPS)
        return accountant.get_epsilon(DELTA)

    def noise_for(make):
        return dp_accounting.calibrate_dp_mechanism(
            make,
            lambda noise: dp_accounting.SelfComposedDpEvent(event(Q, noise), STEPS),
            TARGET,
            DELTA,
            dp_accounting.ExplicitBracketInterval(0.5, 4.0),
            tol=1e-6,
        )

    seconds, value = timed(lambda: epsilon(rdp.RdpAccountant), 7)
    yield {"task": "epsilon", "method": "dp-accounting RDP", "seconds": seconds, "value": value}
    seconds, value = timed(lambda: epsilon(pld.PLDAccountant), 3)
    yield {"task": "epsilon", "method": "dp-accounting PLD", "seconds": seconds, "value": value}

    for steps in (50, 200):
        def schedule():
            accountant = rdp.RdpAccountant()
            value = 0.0
            for i in range(steps):
                accountant.compose(event(*schedule_step(i, steps)))
                value = accountant.get_epsilon(DELTA)
            return value

        seconds, value = timed(schedule, 1)
        yield {"task": "schedule", "method": "dp-accounting RDP", "steps": steps, "seconds": seconds / steps, "value": value}

    seconds, value = timed(lambda: noise_for(rdp.RdpAccountant), 3)
    yield {"task": "calibrate", "method": "dp-accounting RDP", "seconds": seconds, "value": value,
           "epsilon": epsilon(rdp.RdpAccountant, value)}


def loss_rows():
    """Each plan by Google's privacy-loss distribution at its default grid, beside ours, in turns."""
    import dp_accounting
    from dp_accounting import pld

    def event(q, noise, steps):
        return dp_accounting.SelfComposedDpEvent(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(noise)), steps)

    def epsilon(q, noise, steps):
        accountant = pld.PLDAccountant()
        accountant.compose(event(q, noise, steps))
        return accountant.get_epsilon(DELTA)

    best = {}
    for _ in range(3):
        for row in ours("loss"):
            if row["task"] == "loss":
                plan = row["q"], row["noise"], row["steps"]
                row["peer_seconds"], row["peer"] = timed(lambda: epsilon(*plan), 1)
            else:
                plan = "least"
                row["peer_seconds"], row["peer"] = timed(lambda: dp_accounting.calibrate_dp_mechanism(
                    pld.PLDAccountant, lambda noise: event(Q, noise, STEPS), TARGET, DELTA,
                    dp_accounting.ExplicitBracketInterval(0.5, 4.0), tol=1e-6), 1)
            kept = best.setdefault(plan, row)
            for key in ("seconds", "lower_seconds", "peer_seconds"):
                if key in row:
                    kept[key] = min(kept[key], row[key])
    return list(best.values())


def print_loss(rows):
    rows = [row for row in rows if row["task"] in ("loss", "least")]
    if not rows:
        return
    print("## Privacy loss: ε of seven plans at δ = 1e-05, and the least noise for a target\n")
    print("Beside Google's `dp-accounting` at its default grid, each the least of three runs, in turns. Ours is proved from both sides.")
    print("This section alone: `bench/compare.py --only loss`.\n")
    print("| plan: q, noise, steps | dp-accounting | time | paygo, at least | at most | time of at most, of at least | times, at most alone | times, both |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for row in (row for row in rows if row["task"] == "loss"):
        at_most, both = row["seconds"], row["seconds"] + row["lower_seconds"]
        print(f"| {row['q']:.6g}, {row['noise']:g}, {row['steps']:,} | {row['peer']:.7g} | {human(row['peer_seconds'])} | {row['at_least']:.7g} | "
              f"{row['at_most']:.7g} | {human(at_most)}, {human(row['lower_seconds'])} | {row['peer_seconds'] / at_most:.0f} | {row['peer_seconds'] / both:.0f} |")
    for row in (row for row in rows if row["task"] == "least"):
        print(f"\nLeast noise for ε = {TARGET:g}, q = 256/60000, {STEPS} steps: dp-accounting {row['peer']:.8g} in {human(row['peer_seconds'])} (to 1e-6), "
              f"paygo {row['value']:.10g} in {human(row['seconds'])} (to ten digits, one seen to pass beside one seen to fail): "
              f"{row['peer_seconds'] / row['seconds']:.0f} times.")
    print()


def opacus_rows():
    from opacus.accountants import PRVAccountant, RDPAccountant
    from opacus.accountants.utils import get_noise_multiplier

    def epsilon(make, noise=NOISE):
        accountant = make()
        accountant.history = [(noise, Q, STEPS)]
        return accountant.get_epsilon(delta=DELTA)

    for name, make in (("RDP", RDPAccountant), ("PRV", PRVAccountant)):
        seconds, value = timed(lambda: epsilon(make), 3)
        yield {"task": "epsilon", "method": f"Opacus {name}", "seconds": seconds, "value": value}

    for steps in (10, 30):
        def schedule():
            accountant = RDPAccountant()
            value = 0.0
            for i in range(steps):
                q, noise = schedule_step(i, steps)
                accountant.step(noise_multiplier=noise, sample_rate=q)
                value = accountant.get_epsilon(delta=DELTA)
            return value

        seconds, value = timed(schedule, 1)
        yield {"task": "schedule", "method": "Opacus RDP", "steps": steps, "seconds": seconds / steps, "value": value}

    for name in ("rdp", "prv"):
        def calibrate():
            return get_noise_multiplier(
                target_epsilon=TARGET, target_delta=DELTA, sample_rate=Q, steps=STEPS, accountant=name, epsilon_tolerance=1e-3
            )

        seconds, value = timed(calibrate, 3)
        make = RDPAccountant if name == "rdp" else PRVAccountant
        yield {"task": "calibrate", "method": f"Opacus {name.upper()}", "seconds": seconds, "value": value,
               "epsilon": epsilon(make, value)}


def autodp_rows():
    from autodp import rdp_acct, rdp_bank

    def epsilon():
        accountant = rdp_acct.anaRDPacct()
        accountant.compose_poisson_subsampled_mechanisms(
            lambda x: rdp_bank.RDP_gaussian({"sigma": NOISE}, x), Q, coeff=STEPS
        )
        return accountant.get_eps(DELTA)

    seconds, value = timed(epsilon, 3)
    yield {"task": "epsilon", "method": "autodp RDP", "seconds": seconds, "value": float(value)}


def prv_rows():
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    def epsilon():
        mechanism = PoissonSubsampledGaussianMechanism(noise_multiplier=NOISE, sampling_probability=Q)
        accountant = PRVAccountant(
            prvs=[mechanism], max_self_compositions=[STEPS], eps_error=0.01, delta_error=DELTA / 1000
        )
        return accountant.compute_epsilon(delta=DELTA, num_self_compositions=[STEPS])[2]

    seconds, value = timed(epsilon, 3)
    yield {"task": "epsilon", "method": "prv-accountant (upper end)", "seconds": seconds, "value": float(value)}


# An adaptive sequence: the size of a query depends on the answers before it, by a little generator that both sides share.
# Sizes are k/1000 of what would fill the budget of 1 with n equal queries; each is filled up to two thirds of the budget.
def adaptive_sizes(n):
    state = 12345
    for _ in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        yield (500 + state % 1000) / 1500 / n


def opendp_rows():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)

    def run(epsilons, budget):
        odometer = dp.c.make_fully_adaptive_composition(*space, dp.max_divergence())
        queryable = dp.c.make_privacy_filter(odometer, d_in=1, d_out=budget)(0)
        admitted = 0
        for epsilon in epsilons:
            try:
                queryable(dp.m.make_laplace(*space, 1 / epsilon))
                admitted += 1
            except dp.OpenDPException:
                pass
        return admitted

    for n in (1000, 4000):
        seconds, value = timed(lambda: run(adaptive_sizes(n), 1.0), 1)
        yield {"task": "filter", "method": "OpenDP filter", "steps": n, "seconds": seconds / n, "value": value}
    yield {"task": "thousand", "method": "OpenDP filter", "value": run([0.001] * 1000, 1.0)}


def diffprivlib_rows():
    from diffprivlib.accountant import BudgetAccountant
    from diffprivlib.mechanisms import Laplace

    def run(epsilons, budget):
        accountant = BudgetAccountant(epsilon=budget)
        admitted = 0
        for epsilon in epsilons:
            try:
                accountant.check(epsilon, 0)
            except Exception:
                continue
            Laplace(epsilon=epsilon, sensitivity=1).randomise(0)
            accountant.spend(epsilon, 0)
            admitted += 1
        return admitted

    for n in (1000, 4000):
        seconds, value = timed(lambda: run(adaptive_sizes(n), 1.0), 1)
        yield {"task": "filter", "method": "diffprivlib accountant", "steps": n, "seconds": seconds / n, "value": value}
    yield {"task": "thousand", "method": "diffprivlib accountant", "value": run([0.001] * 1000, 1.0)}


def fused():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fused.c")
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "fused.so")
        subprocess.run(["cc", "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", "-o", library, source], check=True)
        loaded = ctypes.CDLL(library)
    loaded.tally.restype = ctypes.c_size_t
    return loaded


def pointer(column):
    return column.ctypes.data_as(ctypes.c_void_p)


class People:
    """Columns of made-up people in single precision, and one round of each peer over them; a budget is 1."""

    def __init__(self):
        import numpy

        self.numpy, self.c = numpy, fused()
        self.units, self.fits = numpy.empty(PEOPLE, numpy.uint32), numpy.empty(PEOPLE, bool)
        self.start, self.s, self.x, self.sum = (numpy.zeros(PEOPLE, numpy.float32) for _ in range(4))
        self.fill(self.start, 0, 2**24)
        self.fill(self.x, 1, 2**26)

    def fill(self, column, index, budget):
        self.c.made_up(ctypes.c_uint64(index), pointer(self.units), ctypes.c_size_t(PEOPLE), THREADS)
        # Exact: at most 24 bits, times a power of two.
        self.numpy.multiply(self.units, self.numpy.float32(1 / budget), out=column, dtype=column.dtype)

    def numpy_where(self):
        fits = self.s + self.x <= 1
        self.numpy.add(self.s, self.x, out=self.s, where=fits)
        return fits

    def numpy_buffers(self):
        numpy, s, x, out, fits = self.numpy, self.s, self.x, self.sum, self.fits
        numpy.add(s, x, out=out)
        numpy.less_equal(out, 1, out=fits)
        numpy.multiply(x, fits, out=out)
        numpy.add(s, out, out=s)
        return fits

    def torch(self):
        import torch

        torch.set_num_threads(THREADS)
        s, x, out, fits = (torch.from_numpy(column) for column in (self.s, self.x, self.sum, self.fits))
        torch.add(s, x, out=out)
        torch.le(out, 1, out=fits)
        torch.where(fits, out, s, out=s)
        return self.fits

    def c_loop(self):
        columns = pointer(self.s), pointer(self.x), ctypes.c_float(1), pointer(self.fits)
        self.c.admit(*columns, ctypes.c_size_t(PEOPLE), THREADS)
        return self.fits

    def exactness(self):
        """The C loop's sums against exact ones. The other peers' sums are the same (`people_rows` checks that)."""
        numpy = self.numpy
        for rounds, budget in EXACTNESS:
            self.s[:] = 0
            exact, refused = numpy.zeros(PEOPLE, numpy.uint64), 0
            for index in range(rounds):
                self.fill(self.x, index, budget)
                fits = self.c_loop()
                columns = pointer(self.units), pointer(fits), ctypes.c_uint64(budget), pointer(exact)
                refused += self.c.tally(*columns, ctypes.c_size_t(PEOPLE), THREADS)
            yield {"task": "people-exact", "method": "f32: NumPy, PyTorch, the C loop", "rounds": rounds,
                   "over": int((exact > budget).sum()), "refused": refused}


def people_rows():
    people = People()
    methods = {
        "NumPy, `np.add(s, x, out=s, where=fits)`": (people.numpy_where, 1),
        "NumPy, with buffers, `s += x * fits`": (people.numpy_buffers, 1),
        "PyTorch, with buffers": (people.torch, THREADS),
        "a fused C loop": (people.c_loop, THREADS),
    }
    best, decisions = {}, None
    # In turns, so that a busy minute of the machine is nobody's alone.
    for _ in range(3):
        for row in ours("people"):
            best[row["method"]] = min(best.get(row["method"], row), row, key=lambda row: row["seconds"])
        for method, (task, threads) in methods.items():
            for _ in range(5):
                people.s[:] = people.start
                seconds, fits = timed(task, 1)
                row = {"task": "people", "method": method, "numbers": "f32", "threads": threads, "seconds": seconds}
                best[method] = min(best.get(method, row), row, key=lambda row: row["seconds"])
            decided = hashlib.sha1(fits).digest(), hashlib.sha1(people.s).digest()
            decisions = decisions or decided
            assert decided == decisions, f"{method} decides differently"
    return [*best.values(), *people.exactness(), *ours("people-exact")]


def collect(only):
    if only == "people":
        return people_rows()
    if only == "loss":
        return loss_rows()
    if only == "clock":
        return ours("clock")
    rows = list(ours()) + ours("clock")
    for peer in (dp_accounting_rows, loss_rows, opacus_rows, autodp_rows, prv_rows, opendp_rows, diffprivlib_rows, people_rows):
        try:
            rows.extend(peer())
        except Exception as error:  # A peer that does not run here is reported, not hidden.
            rows.append({"task": "failed", "method": peer.__name__, "error": repr(error)})
    return rows


def human(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def cpu():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


TITLES = {
    "epsilon": f"ε of DP-SGD: q = 256/60000, noise {NOISE}, {STEPS} steps, δ = {DELTA}",
    "schedule": "A schedule of different (q, noise), ε read after each step: time per step",
    "calibrate": f"Least noise for ε = {TARGET:g}, δ = {DELTA}, q = 256/60000, {STEPS} steps",
}


def print_plans(rows):
    for task, title in TITLES.items():
        mine = [row for row in rows if row["task"] == task and row["method"].startswith("paygo")]
        base = [row["seconds"] for row in mine if row["method"] == "paygo renyi-exact"][-1]
        print(f"## {title}\n")
        print("| method | time | times paygo renyi-exact | ε or noise |" if task != "calibrate"
              else "| method | time | times paygo renyi-exact | noise | ε it has |")
        print("| --- | --- | --- | --- |" if task != "calibrate" else "| --- | --- | --- | --- | --- |")
        for row in (row for row in rows if row["task"] == task):
            name = row["method"] + (f", {row['steps']} steps" if "steps" in row else "")
            cells = [name, human(row["seconds"]), f"{row['seconds'] / base:.1f}×", f"{row['value']:.9g}"]
            if task == "calibrate":
                cells.append(f"{row['epsilon']:.9g}")
            print("| " + " | ".join(cells) + " |")
        print()
    print("## An adaptive sequence of pure-DP queries: time per decision\n")
    print("Epsilons that depend on earlier answers, together two thirds of the budget. paygo's time is for pricing and deciding;")
    print("the peers' includes drawing Laplace noise, which their filters do in the same call.\n")
    base = min(row["seconds"] for row in rows if row["task"] == "filter" and row["method"] == "paygo pure filter")
    print("| method | queries | time per query | times paygo pure | admitted |\n| --- | --- | --- | --- | --- |")
    for row in (row for row in rows if row["task"] == "filter"):
        cells = [row["method"], f"{row['steps']:,}", human(row["seconds"]), f"{row['seconds'] / base:.1f}×", f"{row['value']:,}"]
        print("| " + " | ".join(cells) + " |")
    print("\n## A budget of 1 and 1,000 queries of 0.001: how many are admitted\n")
    print("| method | admitted |\n| --- | --- |")
    for row in (row for row in rows if row["task"] == "thousand"):
        print(f"| {row['method']} | {row['value']:,} |")
    print("\n## Known charges, one core: decisions a second, and no slowdown with their number\n")
    print("| filter | decisions | a second |\n| --- | --- | --- |")
    for row in (row for row in rows if row["task"] == "decisions" and not row["method"].startswith("clock")):
        print(f"| {row['method']} | {row['steps']:,} | {row['steps'] / row['seconds'] / 1e6:.1f} million |")
    print()


def print_clock(rows):
    priced = [row for row in rows if row["task"] == "priced"]
    if not priced:
        return
    print("## The clock: prices and decisions; and a law that grows\n")
    print("This section alone: `bench/compare.py --only clock`. No peer has either.\n")
    print("Until a mechanism that nobody has asked for is priced, (3, 1e-5):\n")
    print("| mechanism | clock | clock of DP-SGD, 14,062 steps, and a reserve of a tenth |\n| --- | --- | --- |")
    for name in dict.fromkeys(row["mechanism"] for row in priced):
        each = {row["method"]: row["seconds"] for row in priced if row["mechanism"] == name}
        print(f"| {name} | {human(each['clock'])} | {human(each['clock for a plan'])} |")
    print("\nKnown charges, one core:\n")
    print("| filter | decisions | a second |\n| --- | --- | --- |")
    for row in (row for row in rows if row["task"] == "decisions" and row["method"].startswith("clock")):
        print(f"| {row['method']} | {row['steps']:,} | {row['steps'] / row['seconds'] / 1e6:.1f} million |")
    print("\nε by privacy loss after each of so many different (q, noise), q from 0.005 to 0.015 and noise from 0.9 to 1.9, from one law that grows:\n")
    print("| steps | a step | the slowest, when it is made anew | ε at the end | of a law made at once |\n| --- | --- | --- | --- | --- |")
    for row in (row for row in rows if row["task"] == "after-each"):
        print(f"| {row['steps']:,} | {human(row['seconds'])} | {human(row['slowest'])} | {row['value']:.6g} | {row['at_once']:.6g} |")
    print()


def print_people(rows):
    timed_rows = [row for row in rows if row["task"] == "people"]
    if not timed_rows:
        return
    print("## A budget for each person: `s + x <= B` in place, with a mask\n")
    print(f"{PEOPLE:,} people, one cost each, seven of eight fit. NumPy works on one thread. This section alone:")
    print("`bench/compare.py --only people`.\n")
    rate = {row["method"]: PEOPLE / row["seconds"] for row in timed_rows}
    base, fastest, loop, mine = (
        next(rate[method] for method in rate if method.startswith(name))
        for name in ("NumPy, `", "NumPy, with", "a fused", "paygo")
    )
    print("| method | sums | threads | million people a second | times NumPy |\n| --- | --- | --- | --- | --- |")
    for row in timed_rows:
        speed = rate[row["method"]]
        print(f"| {row['method']} | {row['numbers']} | {row['threads']} | {speed / 1e6:,.0f} | {speed / base:.1f}× |")
    print(f"\npaygo has {mine / base:.1f} times the speed of NumPy, {mine / fastest:.1f} times that of the fastest form found for it, and")
    print(f"{mine / loop:.2f} times that of the C loop, whose mask is of bytes where paygo's is of bits.\n")
    print("How exact, counted with exact integers: two costs of up to a whole budget, and a hundred of about a 64th. Single")
    print("precision holds each of these costs exactly and rounds the sums, to either side; paygo rounds each cost up, and no sum.\n")
    print("| method | rounds | people past their budget | refused though it would have fitted |\n| --- | --- | --- | --- |")
    for row in sorted((row for row in rows if row["task"] == "people-exact"), key=lambda row: row["rounds"]):
        print(f"| {row['method']} | {row['rounds']} | {row['over']:,} | {row['refused']:,} |")
    print()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["loss", "clock", "people"], help="one section alone")
    only = parser.parse_args().only
    rows = collect(only)
    if not only:
        print("# paygo beside its peers\n")
        print("Made by `bench/compare.py` (its head says how to run it).")
        print(f"Machine: {cpu()}, {os.cpu_count()} cores; Python {platform.python_version()}.\n")
        print_plans(rows)
    print_loss(rows)
    print_clock(rows)
    print_people(rows)
    for row in rows:
        if row["task"] == "failed":
            print(f"{row['method']} did not run: {row['error']}\n", file=sys.stdout)


if __name__ == "__main__":
    main()
