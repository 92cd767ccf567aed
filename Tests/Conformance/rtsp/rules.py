# SPDX-License-Identifier: Apache-2.0
"""The list of rules, and what came of each."""

from wire import Unmet

RULES = []


class NotApplicable(Exception):
    """The rule says nothing about this server as it is set up; the text says why."""


class Rule:
    def __init__(self, group, name, level, what, source, check, is_long):
        self.group, self.name, self.level, self.what, self.source = group, name, level, what, source
        self.check, self.is_long = check, is_long


class Result:
    """`outcome`: ok, FAILED, differs (a should that is not met) or n/a."""

    def __init__(self, rule, outcome, detail):
        self.rule, self.outcome, self.detail = rule, outcome, detail


def rule(group, name, level, what, source="", is_long=False):
    """Registers a check. `level`: "must" of an RFC or of a client that does not play otherwise, or "should".

    The function takes the target. It returns what it saw, or nothing; it raises Unmet.
    """
    def register(check):
        RULES.append(Rule(group, name, level, what, source, check, is_long))
        return check
    return register


def judge(one, target):
    """Runs a rule. A server that cannot be reached fails it: the rule before may have ended the server."""
    try:
        return Result(one, "ok", one.check(target) or "")
    except NotApplicable as reason:
        return Result(one, "n/a", str(reason))
    except Unmet as fault:
        return Result(one, "FAILED" if one.level == "must" else "differs", str(fault))
    except OSError as fault:
        return Result(one, "FAILED", f"the connection failed: {fault}")
    except Exception as fault:
        # A rule with a fault of its own must not take the verdicts of the others with it.
        return Result(one, "FAILED", f"the rule itself is broken: {fault!r}")


def demand(condition, said):
    if not condition:
        raise Unmet(said)


def demand_status(response, *wanted):
    demand(response.status in wanted, f"answered with {response}, not {' or '.join(map(str, wanted))}")
    return str(response)
