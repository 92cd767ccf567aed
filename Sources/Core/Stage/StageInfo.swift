/// What a stage is, as data: printed and checked without making the stage.
public struct StageInfo: Sendable {
    /// What an input takes or an output gives.
    public enum Media: Sendable, Equatable {
        /// Raw pictures in one of these formats, best first.
        case video([PixelFormat])
        /// Access units of one of these codecs.
        case encoded([Codec])
        /// Raw pictures in any format, and access units of any codec.
        case any
        /// Outputs only: the very buffer and format that came in.
        case sameAsInput
        /// No such end.
        case none

        public static func video(_ formats: PixelFormat...) -> Media { .video(formats) }
        public static func encoded(_ codecs: Codec...) -> Media { .encoded(codecs) }
        /// Every raw format that stages other than converters handle.
        public static let anyVideo = Media.video(PixelFormat.allCases)
    }

    /// Whether a filter writes the pixels of the frame it is handed.
    public enum Access: String, Sendable { case read, modify }

    /// Whether a call's duration has a bound. A queue stands before a sink without one (disk, network).
    public enum Service: String, Sendable { case bounded, unbounded }

    /// Kebab-case, unique among the plugins of a run: `x264-encoder`.
    public var id: String
    /// One sentence for `framehost plugins`.
    public var summary: String
    public var input: Media
    public var output: Media
    /// What it gives in the place of `output` where an option asks for it.
    public var otherOutput: OtherOutput?
    public var access: Access
    /// Most input buffers still leased after a call.
    public var hold: Int
    /// Most items accepted and not yet answered.
    public var delay: Int
    /// Threads of its own that have a frame in hand.
    public var workers: Int
    public var service: Service
    /// How long one of its calls may take at most, normally. One that takes longer is named by a warning while it
    /// lasts.
    public var longestCall: MediaTime
    /// Metadata this stage sets or reads.
    public var metadata: [any FrameMetadata.Type]
    /// Commands it answers while running.
    public var commands: [CommandInfo]
    /// Events it posts (``StageContext/post(_:level:text:details:)``); only these may stand in the rules of a chain file.
    public var events: [EventDeclaration]
    /// True for a stage the planner may insert where two formats do not fit.
    public var isConverter: Bool
    /// Sources: what makes them give items when their time has come, where they do that only when asked.
    public var realTime: RealTime?

    public init(
        id: String, summary: String, input: Media = .none, output: Media = .none, otherOutput: OtherOutput? = nil,
        access: Access = .read, hold: Int = 0,
        delay: Int = 0, workers: Int = 0, service: Service = .bounded, longestCall: MediaTime = MediaTime(seconds: 1),
        metadata: [any FrameMetadata.Type] = [],
        commands: [CommandInfo] = [], events: [EventDeclaration] = [], isConverter: Bool = false,
        realTime: RealTime? = nil
    ) {
        self.id = id
        self.summary = summary
        self.input = input
        self.output = output
        self.otherOutput = otherOutput
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
        public var option: String
        public var value: JSONNode.Content

        public init(with option: String, _ value: JSONNode.Content) { (self.option, self.value) = (option, value) }

        /// As the chain file has it.
        public var description: String { "\"\(option)\": \(JSONNode(value).text())" }
    }
}

extension StageInfo {
    /// Another kind of output, where one option has one value: a file's access units with `"decode": false`.
    public struct OtherOutput: Sendable, Equatable {
        public var option: String
        public var value: JSONNode.Content
        public var media: Media

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

    /// What a stage with these options gives.
    public func output(with members: [JSONNode.Member]) -> Media {
        optionOfOtherOutput(members) == nil ? output : otherOutput?.media ?? output
    }
}

/// A command a stage answers while running: `{"stage":"rec","command":"start"}`.
public struct CommandInfo: Sendable, Equatable {
    public var name: String
    /// One sentence.
    public var summary: String
    /// Members of `arguments` that it takes.
    public var arguments: [MemberDeclaration]

    public init(_ name: String, _ summary: String, arguments: [MemberDeclaration] = []) {
        self.name = name
        self.summary = summary
        self.arguments = arguments
    }
}

/// What one instance asks of the plan, after its options and formats are known; never more than its ``StageInfo``
/// declares.
public struct StageDemand: Sendable, Equatable {
    /// Where the buffers of the output come from.
    public enum OutputBuffers: String, Sendable {
        /// Frames from a pool of this stage's own, or access units from its slab.
        case own
        /// The buffers that came in.
        case sameAsInput
    }

    /// Whether this instance writes the pixels it is handed: a meter that draws only when asked.
    public var access = StageInfo.Access.read
    /// Input buffers still leased after a call, at most.
    public var hold = 0
    /// Items accepted and not yet answered, at most.
    public var delay = 0
    /// Threads of its own with a frame in hand.
    public var workers = 0
    /// Buffers of the output pool that are never free: a driver's queue, a decoder's references. The stage may go on
    /// reading them after it has given them; see ``Output/lender``.
    public var floor = 0
    /// Room around the pixels in each buffer of the output pool, for a library that writes there.
    public var padding = BufferPadding()
    /// Sources: captures at a pace it does not set, and never waits.
    public var isLive = false
    public var outputBuffers = OutputBuffers.own
    /// Encoders and readers of files: bytes of access units to reserve.
    public var slabBytes = 16 << 20
    /// Encoders and readers of files: access units to reserve beside those the links hold.
    public var slabUnits = 8
    /// Processor time that one item takes, about, of all threads that work on it; 0 for little, or not known. The
    /// planner puts a queue between stages that take much where a processor is free for it.
    public var cost = MediaTime.zero
    /// Sources: a late call loses what a device has to give. Its thread goes before others where the system permits it; see
    /// ``ThreadPriority``.
    public var isUrgent = false
    /// Sources: gives items when their time has come though it can wait, as a file that is played in real time.
    public var isPaced = false
    /// Joins: gives pictures at this rate by the chain clock, from the newest that each input has, and waits for none. Nil
    /// for one that answers the items of its leading input. docs/design/017-clocked-joins.md.
    public var outputRate: Rational?
    /// Memory this instance takes in `start` beside the plan's pools and slabs, bytes: rings of its own, a library's
    /// pictures. The plan counts it in what the chain needs.
    public var ownBytes = 0
    /// Sources of access units: makes a keyframe when it is asked for one (``Stage/keyframeRequested()``), as a camera
    /// with an encoder of its own may. Encoders always do.
    public var makesKeyframes = false
    /// Files this instance reads and writes, so that the plan sees when one stage would write what another reads or
    /// writes.
    public var readsFiles: [String] = []
    public var writesFiles: [String] = []
    /// Things besides files that this instance takes for itself or must share on equal terms: a server's port.
    public var claims: [Claim] = []
    /// Sources: how many items it will give, where it knows; for progress.
    public var expectedItems: Int?
    /// Sources: how long the whole input is, where it knows; for progress.
    public var expectedDuration: MediaTime?

    public init() {}
}

extension StageDemand {
    /// Something of which there is one, so that the plan sees when two stages are in each other's way at it.
    public struct Claim: Sendable, Equatable {
        /// What it is: stages with the same name mean the same thing.
        public var name: String
        /// How it is to be: stages that say the same share it. Nil: it cannot be shared.
        public var terms: String?
        /// The option at which the fault is shown.
        public var option: String
        /// Between the ids of both stages: "serves port 8554, path '/live', as does".
        public var what: String
        public var remedy: String

        public init(_ name: String, terms: String? = nil, option: String, what: String, remedy: String) {
            self.name = name
            self.terms = terms
            self.option = option
            self.what = what
            self.remedy = remedy
        }
    }
}

extension StageInfo {
    /// What is wrong with an event that a stage of this kind has posted itself, as a sentence; nil where it is declared.
    func fault(of event: Event) -> String? {
        let own = events.first { $0.name == event.name }
        guard let declaration = own ?? ChainEvents.entry(event.name)?.event else {
            return "the event '\(event.name)' is not declared"
        }
        return declaration.fault(of: event.details)
    }
}
