// SPDX-License-Identifier: Apache-2.0

/// Which topics a client wants: expressions of the dialects Concrete and ConcreteSet, such as
/// `tns1:RuleEngine//.|tns1:VideoSource/MotionAlarm`. Prefixes are not compared.
struct TopicFilter: Sendable, Equatable {
    /// Topics of each kind, as recorders know them. Home Assistant reads all of these.
    static let topics: [EventProperty.Kind: [String]] = [
        .motion: ["tns1:VideoSource/MotionAlarm", "tns1:RuleEngine/CellMotionDetector/Motion"],
        .faces: ["tns1:RuleEngine/MyRuleDetector/FaceDetect"],
    ]

    /// Nil for all topics. Each is a topic without prefixes, and whether all below it are meant.
    private var wanted: [(path: String, isTree: Bool)]?

    static let all = TopicFilter()

    private init() { wanted = nil }

    /// - Throws: Nothing: an expression that names no topic of this device takes none.
    init(_ expression: String) {
        wanted = expression.split(separator: "|").prefix(32).map { part in
            var path = Self.plain(part)
            let isTree = path.hasSuffix("//.")
            if isTree { path = String(path.dropLast(3)) }
            return (path, isTree)
        }
    }

    static func == (one: TopicFilter, other: TopicFilter) -> Bool {
        one.wanted?.map(\.path) == other.wanted?.map(\.path) && one.wanted?.map(\.isTree) == other.wanted?.map(\.isTree)
    }

    private static func plain(_ topic: some StringProtocol) -> String {
        String(topic).filter { !$0.isWhitespace }.split(separator: "/", omittingEmptySubsequences: false).map {
            XMLElement.local($0)
        }.joined(separator: "/")
    }

    func takes(_ topic: String) -> Bool {
        guard let wanted else { return true }
        let plain = Self.plain(topic)
        return wanted.contains { $0.path == plain || $0.isTree && plain.hasPrefix("\($0.path)/") }
    }

    /// The topics of a kind that it takes, in a fixed order.
    func topics(of kind: EventProperty.Kind) -> [String] { Self.topics[kind, default: []].filter(takes) }
}
