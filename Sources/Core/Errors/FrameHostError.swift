// SPDX-License-Identifier: Apache-2.0

/// A fault as the user reads it: where it is, what happened, and what to do about it.
///
/// Its text is `place: what. remedy`, with the cause indented below. Stages throw it; the runner adds the stage, the
/// frame number and the PTS.
///
/// ```swift
/// throw FrameHostError(.unavailable, what: "\(path) cannot be opened: \(reason)", remedy: "Check the path.")
/// ```
public struct FrameHostError: Error, Sendable, Equatable {
    /// The broad class of a fault, which decides the exit status.
    public enum Code: String, Sendable, Equatable, CaseIterable {
        /// The command line, the chain file or an option is wrong: nothing was opened. Exit status 2.
        case invalidConfiguration = "invalid-configuration"
        /// A file is not a plugin, or was built against another Core. Exit status 2.
        case unusablePlugin = "unusable-plugin"
        /// A file, device or address cannot be opened, or is gone. Exit status 1; 2 when it is found before anything
        /// runs.
        case unavailable
        /// Bytes from outside do not follow their format. Exit status 1; 2 when it is found before anything runs.
        case invalidMedia = "invalid-media"
        /// A library or the kernel refused a call. Exit status 1; 2 when it is found before anything runs.
        case callFailed = "call-failed"
        /// A bound was reached (memory, buffers, time). Exit status 1; 2 when it is found before anything runs.
        case exhausted
        /// A stop of the chain ended a wait. This is not a fault: a stage lets it through.
        case stopped
        /// A stage or framehost itself broke a rule: a bug. Exit status 1; 2 when it is found before anything runs.
        case broken
    }

    /// What exactly is wrong, if a program decides by it. The sentences are for people: no program compares them.
    public enum Reason: String, Sendable, Equatable, CaseIterable {
        /// The chain has no stage of the id that was given.
        case noSuchStage = "no-such-stage"
        /// The stage or the chain has no command of the name that was given.
        case noSuchCommand = "no-such-command"
        /// The object has no key of the name that was given.
        case noSuchKey = "no-such-key"
        /// The device is not there any more.
        case deviceGone = "device-gone"
        /// The address does not answer, or another program than a control server answers there.
        case noServer = "no-server"
        /// The machine has no more space, quota, memory or file descriptors at present: not a fault of the input.
        case outOfResources = "out-of-resources"
        /// Pictures in which a privacy stage hides something would go where nobody may see them uncovered.
        case showsOriginals = "shows-originals"
    }

    /// The broad class.
    public var code: Code
    /// What exactly is wrong; nil if no program needs to know.
    public var reason: Reason?
    /// The option or key that the error is about: `path`. Where a stage gives no ``place``, an option that is written in
    /// the chain file becomes the place.
    public var option: String?
    /// Where it is: `camera.json:7:5: stages[2].from`, or `cam (v4l2-source): frame 1841, 61.366 s after the start`.
    public var place: FaultPlace
    /// What happened: one sentence without its full stop that names the value, the rule and the range.
    public var what: String
    /// What the user can do, as a sentence; empty when nothing can be done.
    public var remedy: String
    /// What caused it, innermost last: a library's own words, an errno.
    public var cause: String
    /// Whether a change was refused only because the chain had no time for it: it may succeed later, unchanged.
    public internal(set) var isBusy = false
    /// Whether this is only what follows from another fault of the same stage, which is reported too: it is read behind
    /// that one, wherever in the file both are.
    public var isConsequence = false
    /// Whether the stage was asked to wait for what is missing: the chain begins as soon as it is there.
    public var isAwaited = false
    /// Whether a command may have been refused only because its stage or the chain has ended, or is about to end.
    public var mayBeOfEnd = false

    /// Makes an error. A stage leaves `place` out, or gives the key of an option: `place: "path"`. Addresses in the texts
    /// are shown as ``Address`` has them.
    public init(
        _ code: Code, place: FaultPlace = FaultPlace(), what: String, remedy: String = "", cause: String = "",
        reason: Reason? = nil, option: String? = nil
    ) {
        self.code = code
        self.reason = reason
        self.option = option
        self.place = place
        // Values of options and other programs' words may have an address with a password.
        self.what = what.sentence.hidingAddresses()
        self.remedy = remedy.sentence.hidingAddresses()
        self.cause = cause.sentence.hidingAddresses()
    }

    /// Makes an error whose place is known in words only: the key of an option, a path, an address.
    public init(
        _ code: Code, place: String, what: String, remedy: String = "", cause: String = "", reason: Reason? = nil,
        option: String? = nil
    ) {
        self.init(
            code, place: FaultPlace(place), what: what, remedy: remedy, cause: cause, reason: reason, option: option)
    }

    /// This error with `outer` put before its place: what the next layer out knows.
    public func within(_ outer: FaultPlace) -> FrameHostError {
        var wrapped = self
        wrapped.place = place.within(outer)
        return wrapped
    }

    /// This error with a place in words put before its own.
    public func within(_ outer: String) -> FrameHostError { within(FaultPlace(outer)) }

    /// Turns any error into a `FrameHostError`. An error of another type keeps its own words, with its type before
    /// them.
    public static func wrap(_ error: any Error, place: FaultPlace = FaultPlace()) -> FrameHostError {
        if let known = error as? FrameHostError { return known.within(place) }
        if let several = error as? FrameHostErrors, var first = several.errors.first {
            first.cause = ([first.cause] + several.errors.dropFirst().map(\.description)).filter { !$0.isEmpty }.joined(
                separator: "\n")
            return wrap(first, place: place)
        }
        return FrameHostError(
            .callFailed, place: place,
            what: "an error of type '\(String(reflecting: type(of: error)))' was thrown: \(error)",
            remedy: "If this says too little, ask the plugin's author to throw a FrameHostError, which says what to do."
        )
    }

    /// Turns any error into a `FrameHostError`, with a place in words.
    public static func wrap(_ error: any Error, place: String) -> FrameHostError {
        wrap(error, place: FaultPlace(place))
    }
}

/// Several faults that were found together, in the order of the file; never empty.
public struct FrameHostErrors: Error, Sendable {
    /// The faults.
    public var errors: [FrameHostError]

    /// Groups faults.
    public init(_ errors: [FrameHostError]) { self.errors = errors }
}
