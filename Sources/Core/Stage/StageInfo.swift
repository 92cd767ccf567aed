// SPDX-License-Identifier: Apache-2.0

/// What a stage is, as data, which the host prints and checks without making the stage.
///
/// Write the `id` as a literal: the build plugin `FramehostManifest` finds it in the source.
///
/// ```swift
/// static let info = StageInfo(
///     id: "night-mode", summary: "Darkens the picture.",
///     input: .video(.i420, .nv12), output: .sameAsInput, access: .modify)
/// ```
public struct StageInfo: Sendable {
    /// What an input takes or an output gives.
    public enum Media: Sendable, Equatable {
        /// Raw pictures in one of these formats, best first.
        case video([PixelFormat])
        /// Access units of one of these codecs.
        case encoded([Codec])
        /// Sound that is not encoded.
        case audio
        /// Samples of motion.
        case motion
        /// Inputs only: any of these.
        case several([Media])
        /// Inputs only: everything.
        case any
        /// Outputs only: the buffer that came in, in the format that came in.
        case sameAsInput
        /// The stage has no input, or no output.
        case none

        /// Raw pictures in one of these formats, best first.
        public static func video(_ formats: PixelFormat...) -> Media { .video(formats) }
        /// Access units of one of these codecs.
        public static func encoded(_ codecs: Codec...) -> Media { .encoded(codecs) }
        /// Raw pictures in every pixel format there is.
        public static let anyVideo = Media.video(PixelFormat.allCases)
    }

    /// Whether a filter writes the pixels of the frame it is handed.
    public enum Access: String, Sendable {
        /// The stage only reads.
        case read
        /// The stage writes. The runner hands it frames that nobody else holds, and copies where it must.
        case modify
    }

    /// Whether the time that one call takes has a bound.
    public enum Service: String, Sendable {
        /// A call takes about the same time whatever happens outside.
        case bounded
        /// A call may wait for a disk or a network. The planner puts a queue before such a sink.
        case unbounded
    }

    /// The name that chain files use, in kebab-case and unique among the plugins of a run: `x264-encoder`.
    public var id: String
    /// One sentence for `framehost plugins`.
    public var summary: String
    /// What the stage takes; `.none` for a source.
    public var input: Media
    /// What a stage takes on each input beside the first: `"from": ["h264", "aac"]`; `.none` for a stage with one input.
    /// Such a sink adopts ``MultiSink``, and its inputs may come in any order; such a filter adopts ``MultiFilter``, and
    /// its first input is the pictures; such a transform adopts ``MultiTransform``, and none of its inputs is pictures.
    public var furtherInputs: Media
    /// What the stage gives; `.none` for a sink.
    public var output: Media
    /// What the stage gives in place of ``output`` when an option asks for it.
    public var otherOutput: OtherOutput?
    /// Sources: what the source can give beside ``output``, each on a thread of its own: `"from": "clip.audio"`.
    public var furtherOutputs: [FurtherOutput]
    /// Whether the stage writes the pixels of the frames that it is handed.
    public var access: Access
    /// How many input buffers the stage still leases after a call, at most.
    public var hold: Int
    /// How many items the stage has accepted and not yet answered, at most.
    public var delay: Int
    /// How many threads of the stage's own have a frame in hand.
    public var workers: Int
    /// Whether the time that one call takes has a bound.
    public var service: Service
    /// How long a call takes at most when all is well. While a call takes longer, a warning names it.
    public var longestCall: MediaTime
    /// Kinds of metadata that the stage sets or reads.
    public var metadata: [any FrameMetadata.Type]
    /// Commands that the stage carries out while the chain runs.
    public var commands: [CommandInfo]
    /// Events that the stage posts with ``StageContext/post(_:level:text:details:)``. The rules of a chain file can
    /// name only these.
    public var events: [EventDeclaration]
    /// Whether the planner may insert the stage where two formats do not fit.
    public var isConverter: Bool
    /// Sources: the option that makes the source keep real time, for a source that does so only when asked.
    public var realTime: RealTime?

    /// Describes a stage; a member that is left out keeps its default.

    public init(
        id: String, summary: String, input: Media = .none, furtherInputs: Media = .none, output: Media = .none,
        otherOutput: OtherOutput? = nil,
        furtherOutputs: [FurtherOutput] = [], access: Access = .read, hold: Int = 0,
        delay: Int = 0, workers: Int = 0, service: Service = .bounded, longestCall: MediaTime = MediaTime(seconds: 1),
        metadata: [any FrameMetadata.Type] = [],
        commands: [CommandInfo] = [], events: [EventDeclaration] = [], isConverter: Bool = false,
        realTime: RealTime? = nil
    ) {
        self.id = id
        self.summary = summary
        self.input = input
        self.furtherInputs = furtherInputs
        self.output = output
        self.otherOutput = otherOutput
        self.furtherOutputs = furtherOutputs
        self.access = access
        self.hold = hold
        self.delay = delay
        self.workers = workers
        self.service = service
        self.longestCall = longestCall
        self.metadata = metadata
        self.commands = commands
        self.events = events
        self.isConverter = isConverter
        self.realTime = realTime
    }
}

extension StageInfo {
    /// The option, and its value, with which a source keeps real time: `"pace": "realtime"`.
    public struct RealTime: Sendable, Equatable, CustomStringConvertible {
        /// The option's key.
        public var option: String
        /// The value that it must have.
        public var value: JSONNode.Content

        /// Real time where `option` has the value.
        public init(with option: String, _ value: JSONNode.Content) { (self.option, self.value) = (option, value) }

        /// As the chain file has it.
        public var description: String { "\"\(option)\": \(JSONNode(value).text())" }
    }
}

extension StageInfo {
    /// A further output of a source: a source of its own in the plan, with the options of the first.
    ///
    /// ```swift
    /// furtherOutputs: [StageInfo.FurtherOutput("audio", FileSound.type)]
    /// ```
    public struct FurtherOutput: Sendable {
        /// What stands behind the dot: `audio`.
        public var name: String
        /// The kind of source that gives it. Its options are of the same type as those of the first.
        public var type: StageType
        /// Whether the output needs nothing of the first source. Where a chain takes only this output, it has only this
        /// source.
        public var standsAlone: Bool

        /// Names an output.
        public init(_ name: String, _ type: StageType, standsAlone: Bool = false) {
            (self.name, self.type, self.standsAlone) = (name, type, standsAlone)
        }
    }

    /// Another kind of output, where one option has one value: a file's access units with `"decode": false`.
    ///
    /// ```swift
    /// otherOutput: StageInfo.OtherOutput(where: "decode", is: .bool(false), .encoded(.h264))
    /// ```
    public struct OtherOutput: Sendable, Equatable {
        /// The option's key.
        public var option: String
        /// The value with which the stage gives ``media``.
        public var value: JSONNode.Content
        /// What the stage gives then.
        public var media: Media

        /// Other media where `option` has the value.
        public init(where option: String, is value: JSONNode.Content, _ media: Media) {
            self.option = option
            self.value = value
            self.media = media
        }
    }

    /// The option among `members` by which the stage gives `otherOutput`; nil when it gives `output`.
    func optionOfOtherOutput(_ members: [JSONNode.Member]) -> String? {
        guard let other = otherOutput else { return nil }
        return members.last { $0.key == other.option }?.value.value == other.value ? other.option : nil
    }

    /// What a stage with these options gives: ``output``, or the media of ``otherOutput``.
    public func output(with members: [JSONNode.Member]) -> Media {
        optionOfOtherOutput(members) == nil ? output : otherOutput?.media ?? output
    }
}

/// A command that a stage carries out while the chain runs, as data: `{"stage":"rec","command":"start"}`.
///
/// The stage does the work in ``Stage/command(_:arguments:)``.
public struct CommandInfo: Sendable, Equatable {
    /// The command's name: `start`.
    public var name: String
    /// One sentence: what it does.
    public var summary: String
    /// The members that the command takes.
    public var arguments: [MemberDeclaration]

    /// Declares a command.
    public init(_ name: String, _ summary: String, arguments: [MemberDeclaration] = []) {
        self.name = name
        self.summary = summary
        self.arguments = arguments
    }
}

/// What one instance of a stage asks of the plan once its options and formats are known.
///
/// It is never more than the ``StageInfo`` declares. Begin with ``Stage/declaredDemand`` and change what the
/// options decide:
///
/// ```swift
/// var demand: StageDemand {
///     var demand = Self.declaredDemand
///     demand.hold = options.frames
///     return demand
/// }
/// ```
public struct StageDemand: Sendable, Equatable {
    /// Where the buffers of the output come from.
    public enum OutputBuffers: String, Sendable {
        /// Frames from a pool of this stage's own, or access units from its slab.
        case own
        /// The buffers that came in.
        case sameAsInput
    }

    /// Whether this instance writes the pixels of its frames. A meter may do so only when an option asks it to draw.
    public var access = StageInfo.Access.read
    /// How many input buffers the stage still leases after a call, at most.
    public var hold = 0
    /// How many items the stage has accepted and not yet answered, at most.
    public var delay = 0
    /// How many threads of the stage's own have a frame in hand.
    public var workers = 0
    /// How many buffers of the output pool are never free: a driver's queue, a decoder's references.
    ///
    /// The stage may go on reading them after it has emitted them; see ``Output/lender``.
    public var floor = 0
    /// Room around the pixels in each buffer of the output pool, for a library that writes there.
    public var padding = BufferPadding()
    /// Sources: the source captures at a pace that it does not set, and never waits.
    public var isLive = false
    /// Filters: no frame may go on without the stage's work, such as hiding faces. While the stage is paused, frames end
    /// there, and `"onError": "bypass"` is refused.
    public var mustNotBePassed = false
    /// Filters that must not be passed: what the stage hides, in words that another stage which hides the same has too:
    /// `faces`. Nil, the default, if no other stage hides it.
    ///
    /// A picture that passes one of these stages need not pass the others.
    public var hides: String?
    /// Sinks: nothing of a picture leaves the stage, neither to a file nor to a screen or a network. Such a sink may have
    /// pictures in which a privacy stage hides something.
    public var showsNothing = false
    /// Filters and transforms: the stage writes pictures of what it gives into files of its own, beside its output.
    public var writesPictures = false
    /// Where the buffers of the output come from.
    public var outputBuffers = OutputBuffers.own
    /// Encoders and readers of files: memory for access units, in bytes.
    public var slabBytes = 16 << 20
    /// Encoders and readers of files: how many access units to reserve beside those that the links hold.
    public var slabUnits = 8
    /// About how much processor time one item takes, summed over all threads that work on it; 0 for little or unknown.
    ///
    /// The planner puts a queue between two stages that take much, where a processor is free for it.
    public var cost = MediaTime.zero
    /// Sources: a late call loses what the device gives. The source's thread gets a higher priority where the system
    /// permits it.
    public var isUrgent = false
    /// Sources: the source gives each item at its time though it could wait, such as a file that is played in real
    /// time.
    public var isPaced = false
    /// Joins: the join gives pictures at this rate, made of the newest of each input: by the chain clock, and it waits for no
    /// input; where none of its inputs is live, by their times (``JoinInputs/followsTimes``). Nil for a join that answers the
    /// items of its leading input. docs/design/017-clocked-joins.md.
    public var outputRate: Rational?
    /// Memory in bytes that the stage takes in `start` beside the plan's pools and slabs: rings of its own, a library's
    /// pictures. The plan counts it in what the chain needs.
    public var ownBytes = 0
    /// Sources of access units: the source makes a keyframe when it is asked for one (``Stage/keyframeRequested()``),
    /// as a camera with an encoder of its own may. Encoders always do.
    public var makesKeyframes = false
    /// How much of the past the stage needs until its output is that of a run from the beginning, for chains that
    /// make a part of a file. Nil means as many frames as ``hold`` and ``delay`` together.
    ///
    /// A stage that remembers more must say so.
    public var warmUp: WarmUp?
    /// How many frames that follow one a stage needs for it, for chains that make a part of a file. Nil means as
    /// many as ``delay``.
    public var lookAhead: Int?
    /// Sources: the source can give a part of its timeline (``StageContext/part``). Sinks: what the sink makes of a part
    /// can be put together with what others make of the rest.
    public var isDivisible = false
    /// Sources: the input lists all its pictures, so that parts of ``expectedDuration`` surely make up the whole.
    public var hasIndex = false
    /// Files that this instance reads. The plan refuses a chain in which another stage would write one of them, and
    /// `framehost batch` makes outputs again where one has changed. It asks before `negotiate`: name here what the options
    /// name, or lead to.
    public var readsFiles: [String] = []
    /// Files that this instance writes. The plan refuses a chain in which another stage would read or write one of
    /// them.
    public var writesFiles: [String] = []
    /// Things other than files that this instance needs alone, or shares on equal terms: a server's port.
    public var claims: [Claim] = []
    /// Sources: how many items the source will give, where it knows; for the progress line.
    public var expectedItems: Int?
    /// Sources: how long the whole input is, where the source knows; for the progress line.
    public var expectedDuration: MediaTime?

    /// A demand for nothing special; ``Stage/declaredDemand`` is the usual value to start from.
    public init() {}
}

extension StageDemand {
    /// Something of which there is only one, so that the plan sees when two stages need it.
    public struct Claim: Sendable, Equatable {
        /// What is claimed: two claims of the same name mean the same thing.
        public var name: String
        /// On what terms: stages with equal terms share the thing. Nil: no other stage may have it.
        public var terms: String?
        /// The option at which a conflict is shown.
        public var option: String
        /// The words of a conflict between the ids of both stages: "serves port 8554, path '/live', as does".
        public var what: String
        /// What the person can do about a conflict, as a sentence.
        public var remedy: String
        /// The same where the stages are in different chain files; nil where it is the same.
        public var remedyBetweenChains: String?

        /// Claims the thing called `name`.
        public init(
            _ name: String, terms: String? = nil, option: String, what: String, remedy: String,
            remedyBetweenChains: String? = nil
        ) {
            self.remedyBetweenChains = remedyBetweenChains
            self.name = name
            self.terms = terms
            self.option = option
            self.what = what
            self.remedy = remedy
        }
    }
}

extension StageInfo {
    /// What is wrong with an event that a stage of this kind has posted itself, as a sentence; nil where it is
    /// declared.
    func fault(of event: Event) -> String? {
        let own = events.first { $0.name == event.name }
        guard let declaration = own ?? ChainEvents.entry(event.name)?.event else {
            return "the event '\(event.name)' is not declared"
        }
        return declaration.fault(of: event.details)
    }
}

extension StageInfo.Media {
    /// The media of an input that takes these or `other`.
    func joined(_ other: StageInfo.Media) -> StageInfo.Media {
        switch (self, other) {
        case (.encoded(let some), .encoded(let more)): .encoded(some + more.filter { !some.contains($0) })
        case (.video(let some), .video(let more)): .video(some + more.filter { !some.contains($0) })
        case (_, .several(let more)): more.reduce(self) { $0.joined($1) }
        case (.several(let some), _):
            .several(
                some.contains { $0.takes(other) && other.takes($0) }
                    ? some.map { $0.takes(other) && other.takes($0) ? $0.joined(other) : $0 } : some + [other])
        default: self == other ? self : .several([self, other])
        }
    }

    /// Whether an input of these media takes an output of `gives`, as far as the stage types say.
    func takes(_ gives: StageInfo.Media) -> Bool {
        switch (self, gives) {
        case (.several(let media), _): media.contains { $0.takes(gives) }
        case (.any, _), (_, .any), (_, .sameAsInput): true
        case (.encoded(let taken), .encoded(let given)): !Set(taken).isDisjoint(with: given)
        case (.video, .video), (.audio, .audio), (.motion, .motion): true
        default: false
        }
    }

    /// What a message lists to whom `gives` this: of codecs those of sound for a sound, and those of pictures for a
    /// picture. All where there are none, and for a codec of which nobody knows what it is of.
    func concerning(_ gives: StageInfo.Media) -> StageInfo.Media {
        let isKnown = gives.codecs.allSatisfy { $0.isSound || [.h264, .h265, .mjpeg, .av1].contains($0) }
        let codecs = codecs.filter { $0.isSound == gives.isSound }
        return codecs.isEmpty || !isKnown ? self : .encoded(codecs)
    }

    private var codecs: [Codec] {
        switch self {
        case .encoded(let codecs): codecs
        case .several(let media): media.flatMap(\.codecs)
        case .video, .audio, .motion, .any, .sameAsInput, .none: []
        }
    }

    /// Whether it is sound, encoded or not.
    var isSound: Bool {
        switch self {
        case .audio: true
        case .encoded(let codecs): codecs.contains(where: \.isSound)
        case .several(let media): media.contains(where: \.isSound)
        case .video, .motion, .any, .sameAsInput, .none: false
        }
    }
}

extension Codec {
    /// Whether it is a codec of sound.
    var isSound: Bool { [.aac, .opus, .mp3, .muLaw, .aLaw, .g726].contains(self) }
}
