// SPDX-License-Identifier: Apache-2.0

/// Which blocks a reader gets, by what it has set up: pictures, sound or both.
///
/// With both, a reader gets no sound before the first keyframe, and none that is heard before that picture is shown.
/// Sound alone starts at once.
struct SoundGate: Sendable {
    private enum State {
        /// No keyframe has come yet.
        case closed
        /// A keyframe is shown at this time of the pictures' clock.
        case from(UInt32)
        case open
    }

    private let hasPictures: Bool
    private let hasSound: Bool
    private var state: State

    init(hasPictures: Bool, hasSound: Bool) {
        self.hasPictures = hasPictures
        self.hasSound = hasSound
        state = hasPictures ? .closed : .open
    }

    /// Whether the reader gets a block.
    ///
    /// - Parameter time: In ticks of the pictures' clock.
    mutating func admits(_ medium: Medium, isKeyframe: Bool, time: UInt32) -> Bool {
        guard medium == .sound else {
            if isKeyframe, case .closed = state { state = .from(time) }
            return hasPictures
        }
        guard hasSound else { return false }
        switch state {
        case .closed: return false
        case .from(let begin):
            guard Int32(bitPattern: time &- begin) >= 0 else { return false }
            state = .open
            return true
        case .open: return true
        }
    }
}

extension SoundGate {
    init(_ transports: SessionTransports) {
        self.init(hasPictures: transports[.pictures] != nil, hasSound: transports[.sound] != nil)
    }
}
