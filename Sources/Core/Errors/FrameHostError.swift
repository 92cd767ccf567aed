/// A fault as the user reads it: where, what happened, what to do about it.
///
/// Written as `place: what. remedy`, the cause indented below. Thrown by every part of framehost and by plugins;
/// immutable, so it may be handed to any thread.
public struct FrameHostError: Error, Sendable, Equatable {
    /// The broad class of a fault, from which the exit status follows.
    public enum Code: String, Sendable, Equatable, CaseIterable {
        /// The command line, the chain file or an option is wrong: nothing was opened. Exit status 2.
        case invalidConfiguration = "invalid-configuration"
        /// A file is no plugin, or one for another Core. Exit status 2.
        case unusablePlugin = "unusable-plugin"
        /// A file, device or address cannot be opened or has gone. Exit status 1; 2 when it is found before anything
        /// runs.
        case unavailable
        /// Bytes from outside do not follow their format. Exit status 1; 2 when it is found before anything runs.
        case invalidMedia = "invalid-media"
        /// A library or the kernel refused a call. Exit status 1; 2 when it is found before anything runs.
        case callFailed = "call-failed"
        /// A bound was reached (memory, buffers, time). Exit status 1; 2 when it is found before anything runs.
        case exhausted
        /// A wait was ended by `stop`; not a fault of the chain.
        case stopped
        /// A rule of framehost's own was broken: a bug of a stage or of framehost. Exit status 1; 2 when it is found
        /// before anything runs.
        case broken
    }

    /// The broad class.
    public var code: Code
    /// Where: `camera.json:7:5: stages[2].from`, or `cam (v4l2-source): frame 1841, PTS 61.366 s`.
    public var place: FaultPlace
    /// What happened: one sentence without its full stop, naming the value, the rule and the range.
    public var what: String
    /// What the reader can do, as a sentence; empty when nothing can be done.
    public var remedy: String
    /// What lies behind it, innermost last: a library's own words, an errno.
    public var cause: String

    public init(
        _ code: Code, place: FaultPlace = FaultPlace(), what: String, remedy: String = "", cause: String = ""
    ) {
        self.code = code
        self.place = place
        self.what = what
        self.remedy = remedy
        self.cause = cause
    }

    /// Makes an error whose place is known in words only: the key of an option, a path, an address.
    public init(_ code: Code, place: String, what: String, remedy: String = "", cause: String = "") {
        self.init(code, place: FaultPlace(place), what: what, remedy: remedy, cause: cause)
    }

    /// The same fault one layer further out: `outer` before the place that is already there.
    public func within(_ outer: FaultPlace) -> FrameHostError {
        var wrapped = self
        wrapped.place = place.within(outer)
        return wrapped
    }

    /// The same with a place in words.
    public func within(_ outer: String) -> FrameHostError { within(FaultPlace(outer)) }

    /// Any error as one of ours; a foreign one keeps its own words, with its type before them.
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

    /// The same with a place in words.
    public static func wrap(_ error: any Error, place: String) -> FrameHostError {
        wrap(error, place: FaultPlace(place))
    }
}

/// Several faults found in one go, in the order of the file; never empty.
public struct FrameHostErrors: Error, Sendable {
    public var errors: [FrameHostError]

    public init(_ errors: [FrameHostError]) { self.errors = errors }
}
