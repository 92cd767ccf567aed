/// A device that a kind of stage can use, such as a camera: what `framehost devices` tells of it.
///
/// Plain values, so that a host prints them without knowing what they are about.
public struct StageDevice: Sendable {
    /// As people call it: `HD Pro Webcam C920`.
    public var name: String
    /// Where it is now: `/dev/video0`.
    public var path: String
    /// What names it again after it was pulled or the machine restarted, best first; may be empty.
    public var stableIDs: [String]
    /// Further things to know, each under a word of its own: `driver`, `bus`.
    public var facts: [StageTopic.Fact]
    /// What it gives or takes.
    public var formats: [Format]
    /// What can be set on it, and in which option it is written.
    public var controls: [OptionField]
    /// The option that takes `controls`; empty where there are none.
    public var option: String
    /// Why it cannot be used or asked now; empty when it can.
    public var fault: String

    /// A kind of picture with its sizes.
    public struct Format: Sendable {
        /// As the chain file has it; empty for one that the stage cannot use.
        public var name: String
        /// As the device calls it.
        public var title: String
        public var sizes: [Size]

        public init(_ name: String, title: String, sizes: [Size]) {
            self.name = name
            self.title = title
            self.sizes = sizes
        }
    }

    /// A size with its frame rates.
    public struct Size: Sendable, Equatable {
        public var width: Int
        public var height: Int
        /// Highest first; only the ends where any rate between them is possible; empty when unknown.
        public var rates: [Rational]
        /// Any rate between the two of `rates` is possible.
        public var isRange: Bool

        public init(width: Int, height: Int, rates: [Rational], isRange: Bool = false) {
            self.width = width
            self.height = height
            self.rates = rates
            self.isRange = isRange
        }
    }

    public init(
        name: String, path: String, stableIDs: [String] = [], facts: [StageTopic.Fact] = [], formats: [Format] = [],
        controls: [OptionField] = [], option: String = "", fault: String = ""
    ) {
        self.name = name
        self.path = path
        self.stableIDs = stableIDs
        self.facts = facts
        self.formats = formats
        self.controls = controls
        self.option = option
        self.fault = fault
    }
}

/// A stage that uses devices of which a machine may have several.
public protocol DeviceStage: Stage {
    /// [control thread] Those that are there, for `framehost devices`. Changes nothing on them.
    static func devices() throws -> [StageDevice]
}
