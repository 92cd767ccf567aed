// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Tells whether any value meets all conditions on one member of an event.
struct RuleContradiction {
    private let tests: [RuleCondition.Test]
    private let member: MemberDeclaration

    init(_ conditions: [RuleCondition], _ member: MemberDeclaration) {
        tests = conditions.map(\.test)
        self.member = member
    }

    /// True where no value meets all of them.
    var isNeverMet: Bool {
        guard tests.count > 1 || !member.words.isEmpty else { return false }
        if let values = namedValues { return !values.contains { meetsAll($0) } }
        // No test names a value, so a number must fit between the bounds.
        let lowest = tests.compactMap { test -> (Double, isOpen: Bool)? in
            switch test {
            case .above(let bound): (bound, true)
            case .atLeast(let bound): (bound, false)
            default: nil
            }
        }.max { ($0.0, $0.isOpen ? 1 : 0) < ($1.0, $1.isOpen ? 1 : 0) }
        let highest = tests.compactMap { test -> (Double, isOpen: Bool)? in
            switch test {
            case .below(let bound): (bound, true)
            case .atMost(let bound): (bound, false)
            default: nil
            }
        }.min { ($0.0, $0.isOpen ? 0 : 1) < ($1.0, $1.isOpen ? 0 : 1) }
        guard let lowest, let highest else { return false }
        if lowest.0 == highest.0, !lowest.isOpen, !highest.isOpen {
            return !meetsAll(.number(lowest.0))
        }
        return lowest.0 >= highest.0
    }

    /// All values that could meet the conditions; nil where there are too many to name.
    private var namedValues: [RuleCondition.Value]? {
        for test in tests {
            switch test {
            case .equals(let value): return [value]
            case .among(let values): return values
            default: continue
            }
        }
        switch member.kind {
        case .bool: return [.bool(true), .bool(false)]
        case .string: return member.words.isEmpty ? nil : member.words.map { .string($0) }
        default: return nil
        }
    }

    private func meetsAll(_ value: RuleCondition.Value) -> Bool {
        tests.allSatisfy { test in
            switch (test, value) {
            case (.above(let bound), .number(let number)): number > bound
            case (.below(let bound), .number(let number)): number < bound
            case (.atLeast(let bound), .number(let number)): number >= bound
            case (.atMost(let bound), .number(let number)): number <= bound
            case (.equals(let wanted), _): value == wanted
            case (.not(let unwanted), _): value != unwanted
            case (.among(let wanted), _): wanted.contains(value)
            case (.above, _), (.below, _), (.atLeast, _), (.atMost, _): false
            }
        }
    }
}
