# SPDX-License-Identifier: Apache-2.0
"""What proof-diff.sh says, of recordings that are there: judge.py PROFCTL FOLDER ROUNDS.

Under the hypothesis that nothing changed, the rate of false discoveries is that of comparisons with any sure change. Splits
of the same recordings are drawn from a fixed seed; they overlap, so their number is no number of independent trials."""
import concurrent.futures, json, os, random, statistics, subprocess, sys

PROFCTL, FOLDER, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
RATE, SPLITS, SIDE = 0.05, 40, 5
SLOWER, WHAT, PART = (2, 3, 5, 8, 12), "chore_three", 0.3
PROGRAMS = ("chores", "python", "cc1")
draw = random.Random(1)
failures = 0


def path(program, number):
    return os.path.join(FOLDER, f"{program}-{number}.fxt")


def work_of(name):
    with open(name.replace(".fxt", ".out"), encoding="utf-8") as file:
        return next(line.split()[1] for line in file if len(line.split()) == 2)


def compare(task):
    before, after, per = task
    if per == "work":
        per = ",".join(work_of(name) for name in before + after)
    done = subprocess.run([PROFCTL, "diff", *before, "--with", *after, "--json", "-n", "0", "--per", per], capture_output=True, check=True)
    return json.loads(done.stdout)


def compare_all(tasks):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(compare, tasks))


def split(program, side):
    """Two sides of so many recordings each, without any in common."""
    numbers = draw.sample(range(1, ROUNDS + 1), 2 * side)
    return [path(program, n) for n in numbers[:side]], [path(program, n) for n in numbers[side:]]


def row_of(result, name):
    return next(row for row in result["rows"] if row["name"] == name)["self"]


def expect(is_so, text):
    global failures
    failures += not is_so
    print(f"{'ok  ' if is_so else 'FAIL'} {text}")


def false_alarms():
    print(f"\n{'program':8} {'a side':>6} {'per':>5} {'tests':>6} {'with alarms':>12} {'above 3 %':>10} {'runs differ':>12}")
    for program in PROGRAMS:
        for side, per in ((1, "cpu"), (SIDE, "cpu"), (SIDE, "work")):
            results = compare_all([(*split(program, side), per) for _ in range(SPLITS)])
            alarms = sum(result["sure"] > 0 for result in results)
            differ = statistics.median(result["runs_differ"] for result in results)
            tests = statistics.median(result["tests"] for result in results)
            large = sum(any(row[part]["sure"] and row[part]["change"] > 0.03 * result["before"]["whole"]
                            for row in result["rows"] for part in ("self", "total")) for result in results)
            print(f"{program:8} {side:6} {per:>5} {tests:6.0f} {alarms:5} of {SPLITS:3} {large:10} {100 * differ:10.1f} %")
            names = sorted({row["name"] for result in results for row in result["rows"] if row["self"]["sure"] or row["total"]["sure"]})
            if names:
                print(f"         {' '.join(names[:8])}")
            if side > 1:
                # More than 5 of 40 come in 1 of 70 cases at a rate of 5 %.
                expect(alarms <= 5, f"{program}: false alarms, {side} recordings a side, per {per}")


def found_of(results):
    return [row_of(result, WHAT)["sure"] and row_of(result, WHAT)["change"] > 0 for result in results]


def change_of(percent, per):
    """What a function's value becomes when it takes so much longer, as a part of what it was."""
    slower = percent / 100
    return slower if per == "work" else (1 + slower) / (1 + PART * slower) - 1


def visible(side, per):
    """Says which slow-downs are found, and whether that is what is said to be visible."""
    numbers = range(1, ROUNDS // 2 + 1)
    stated = [row_of(result, WHAT) for result in compare_all([(*split("chores", side), per) for _ in range(SPLITS)])]
    stated = statistics.median(row["visible"] / row["before"] for row in stated)
    rates = {0: 0.0}
    for percent in SLOWER:
        tasks = [([path("chores", n) for n in draw.sample(range(1, ROUNDS + 1), side)],
                  [path(f"slower-{percent}", n) for n in draw.sample(numbers, side)], per) for _ in range(SPLITS)]
        found = found_of(compare_all(tasks))
        rates[percent] = sum(found) / len(found)
    print(f"\n{side} a side, per {per}: {WHAT} changes visibly from {100 * stated:.2f} % on, it is said; "
          + ", ".join(f"slower by {percent} % is found in {100 * rates[percent]:.0f} %" for percent in SLOWER))
    if side == 1:
        return  # what runs differ by is not measured
    points = sorted((change_of(percent, per), rate) for percent, rate in rates.items())
    real = None
    for (low, low_rate), (high, high_rate) in zip(points, points[1:]):
        if low_rate < 0.8 <= high_rate:
            real = low + (high - low) * (0.8 - low_rate) / (high_rate - low_rate)
            break
    if real is None:
        expect(False, "no slow-down is found in 4 of 5")
    else:
        expect(1 / 1.5 <= stated / real <= 1.5, f"found in 4 of 5 from {100 * real:.2f} % on: what is said is {stated / real:.2f} of it")


def slower_function():
    """With one recording a side only large changes are sure, and by work what differs is the machine's speed too."""
    for side, per, least in ((3, "cpu", 9), (1, "cpu", 0), (SIDE, "work", 0)):
        tasks = [([path("chores", (n + i) % ROUNDS + 1) for i in range(side)],
                  [path("slower-5", (n + i) % (ROUNDS // 2) + 1) for i in range(side)], per) for n in range(10)]
        found = sum(found_of(compare_all(tasks)))
        expect(found >= least, f"a function that is slower by 5 %: found in {found} of 10, {side} a side, per {per}")


counts = [compare(([path("chores", n)], [path("chores", n)], "cpu"))["before"]["recordings"][0]["samples"] for n in (1, ROUNDS)]
print(f"{ROUNDS} recordings of each program, {counts[0]} and {counts[1]} samples in the first and the last of chores")
slower_function()
for of_side in (1, 3, SIDE):
    visible(of_side, "cpu")
false_alarms()
sys.exit(failures > 0)
