/// What a service may see of a run and do with it: no more than whoever writes commands to the program.
///
/// Made by the host. Everything is safe from any thread but a stage's, and nothing makes the run wait.
public protocol RunControl: AnyObject, Sendable {
    /// What people call the chain: its file's name without folder and `.json`.
    var chainName: String { get }
    /// The chain's folder, from which relative paths in a service's options are meant.
    var folder: String { get }
    var clock: ChainClock { get }

    /// The chain file as it would be for what runs now, live options as they are set, `--set` not applied. Values of the
    /// environment are not filled in; options of services are left out.
    var chain: JSONNode { get }
    /// As `framehost check --json` prints it.
    var plan: JSONNode { get }
    /// As `--stats` writes them.
    var figures: JSONNode { get }
    /// Figures for programs that draw them, times as histograms; see ``Chain/metrics``.
    var metrics: JSONNode { get }
    var status: ChainStatus { get }
    /// The kinds of stage that the chain has now, by id of the plugin, as `framehost describe --json` prints them.
    var kinds: JSONNode { get }

    /// What happens from now on.
    ///
    /// - Parameter capacity: Events that wait for this listener before it loses the oldest.
    func subscribe(capacity: Int) -> EventSubscription
    /// An event as `--events` writes it.
    func json(of event: Event) -> JSONNode
    /// Tells of something that happened to the service itself; `event.stage` stays nil.
    func post(_ event: String, level: Event.Level, text: String, details: JSONNode)

    /// Has a command done, of those that `--commands` reads (docs/chain-file.md).
    ///
    /// - Parameters:
    ///   - command: The command's JSON object.
    ///   - reply: Called once, now or later, on any thread; must not wait.
    func perform(_ command: JSONNode, reply: @escaping CommandReply)

    /// Asks for the next picture that a stage gives; it comes to `inbox`.
    ///
    /// - Throws: ``FrameHostError``: no such stage, or one that gives no pictures; `.exhausted`.
    func askPicture(of stage: String, for inbox: PictureInbox) throws
    /// The access units that a stage gives come to `inbox`; see ``Chain/watchUnits(of:for:)``.
    ///
    /// - Throws: ``FrameHostError``: no such stage, or one that gives no access units.
    func watchUnits(of stage: String, for inbox: UnitInbox) throws -> EncodedFormat
    /// Ends that.
    func unwatchUnits(of stage: String, for inbox: UnitInbox)
    /// Asks for a keyframe as soon as may be; false where the stage's keyframes are where they are.
    @discardableResult
    func requestKeyframe(of stage: String) -> Bool

    /// A file's bytes of a picture. Takes a while: not on a thread that serves many.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable` where no plugin can, or what it throws.
    func encode(_ picture: StagePicture, as form: PictureForm) throws -> [UInt8]
}
