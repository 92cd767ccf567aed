// SPDX-License-Identifier: Apache-2.0

/// A condition on one member of an event.
public struct RuleCondition: Sendable, Equatable {
    /// A value that can be compared.
    public enum Value: Sendable, Equatable {
        /// True or false.
        case bool(Bool)
        /// A number.
        case number(Double)
        /// A string.
        case string(String)

        /// Nil for null, lists, objects, and numbers beyond all doubles.
        public init?(_ node: JSONNode) {
            switch node.value {
            case .bool(let flag): self = .bool(flag)
            case .string(let text): self = .string(text)
            case .number:
                guard let number = node.asDouble else { return nil }
                self = .number(number)
            case .null, .array, .object: return nil
            }
        }

        /// The type of the value.
        public var kind: MemberDeclaration.Kind {
            switch self {
            case .bool: .bool
            case .number: .number
            case .string: .string
            }
        }
    }

    /// What the value must be.
    public enum Test: Sendable, Equatable {
        /// Greater than this.
        case above(Double)
        /// Less than this.
        case below(Double)
        /// This or greater.
        case atLeast(Double)
        /// This or less.
        case atMost(Double)
        /// Equal to this.
        case equals(Value)
        /// Other than this.
        case not(Value)
        /// One of these: `in`.
        case among([Value])

        /// The keys of a chain file, in the order in which they are listed.
        public static let keys = ["above", "below", "atLeast", "atMost", "equals", "not", "in"]
    }

    /// The member of the event's details.
    public var member: String
    /// The member's declared type. A value of another type meets no condition.
    public var kind: MemberDeclaration.Kind
    /// What the value must be.
    public var test: Test

    /// Makes a condition.
    public init(_ member: String, _ kind: MemberDeclaration.Kind, _ test: Test) {
        self.member = member
        self.kind = kind
        self.test = test
    }

    /// - Parameter details: The details of an event.
    func fits(_ details: JSONNode) -> Bool {
        guard let node = details[member], let value = Value(node), value.kind == kind else { return false }
        switch (test, value) {
        case (.above(let bound), .number(let number)): return number > bound
        case (.below(let bound), .number(let number)): return number < bound
        case (.atLeast(let bound), .number(let number)): return number >= bound
        case (.atMost(let bound), .number(let number)): return number <= bound
        case (.equals(let wanted), _): return value == wanted
        case (.not(let unwanted), _): return value != unwanted
        case (.among(let wanted), _): return wanted.contains(value)
        case (.above, _), (.below, _), (.atLeast, _), (.atMost, _): return false
        }
    }
}
