// SPDX-License-Identifier: Apache-2.0

/// A device that a stage type can use, such as a camera: what `framehost devices` tells of it.
///
/// Plain values, so that a host prints them without knowing what they are about.
public struct StageDevice: Sendable {
    /// As people call it: `HD Pro Webcam C920`.
    public var name: String
    /// Where it is now: `/dev/video0`.
    public var path: String
    /// Names by which it is found again after it was unplugged or the machine restarted, best first; may be empty.
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
        /// The sizes in this format.
        public var sizes: [Size]

        /// Describes a kind of picture.
        public init(_ name: String, title: String, sizes: [Size]) {
            self.name = name
            self.title = title
            self.sizes = sizes
        }
    }

    /// A size with its frame rates.
    public struct Size: Sendable, Equatable {
        /// Width in pixels.
        public var width: Int
        /// Height in pixels.
        public var height: Int
        /// The frame rates, highest first; for a range, the highest and the lowest; empty when unknown.
        public var rates: [Rational]
        /// Whether every rate between the two of ``rates`` is possible.
        public var isRange: Bool

        /// Describes a size.
        public init(width: Int, height: Int, rates: [Rational], isRange: Bool = false) {
            self.width = width
            self.height = height
            self.rates = rates
            self.isRange = isRange
        }
    }

    /// Describes a device.
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
    /// [control thread] Finds the devices of the machine, for `framehost devices`, and changes nothing on them.
    static func devices() throws -> [StageDevice]
}
