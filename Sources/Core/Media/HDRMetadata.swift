// SPDX-License-Identifier: Apache-2.0

/// What HDR10 says once of all pictures, so that a display can show them: the display on which they were made (SMPTE ST
/// 2086) and how bright they become (CTA-861.3). Units are those of H.264, D.2.29 and D.2.31.
public struct HDRMetadata: Sendable, Hashable {
    /// A colour, in steps of 0.00002 of CIE 1931 x and y.
    public struct Chromaticity: Sendable, Hashable {
        /// x, 0...50,000.
        public var x: UInt16
        /// y, 0...50,000.
        public var y: UInt16

        /// Names a colour.
        public init(x: UInt16, y: UInt16) { (self.x, self.y) = (x, y) }
    }

    /// The display on which the pictures were made.
    public struct MasteringDisplay: Sendable, Hashable {
        /// Its red.
        public var red: Chromaticity
        /// Its green.
        public var green: Chromaticity
        /// Its blue.
        public var blue: Chromaticity
        /// Its white point.
        public var white: Chromaticity
        /// Its brightest white, in steps of 0.0001 cd/m².
        public var maximum: UInt32
        /// Its darkest black, in steps of 0.0001 cd/m².
        public var minimum: UInt32

        /// Describes a display.
        public init(
            red: Chromaticity, green: Chromaticity, blue: Chromaticity, white: Chromaticity, maximum: UInt32,
            minimum: UInt32
        ) {
            (self.red, self.green, self.blue, self.white) = (red, green, blue, white)
            (self.maximum, self.minimum) = (maximum, minimum)
        }
    }

    /// How bright the pictures become.
    public struct ContentLight: Sendable, Hashable {
        /// The brightest pixel (MaxCLL), in cd/m².
        public var maximum: UInt16
        /// The brightest picture on average (MaxFALL), in cd/m².
        public var average: UInt16

        /// Says how bright.
        public init(maximum: UInt16, average: UInt16) { (self.maximum, self.average) = (maximum, average) }
    }

    /// Nil where nobody says.
    public var masteringDisplay: MasteringDisplay?
    /// Nil where nobody says.
    public var contentLight: ContentLight?

    /// Says what is known.
    public init(masteringDisplay: MasteringDisplay? = nil, contentLight: ContentLight? = nil) {
        (self.masteringDisplay, self.contentLight) = (masteringDisplay, contentLight)
    }
}
