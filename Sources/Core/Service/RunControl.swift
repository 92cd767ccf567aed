// SPDX-License-Identifier: Apache-2.0

/// What a service may see of a run and do with it: no more than a person who writes commands to the program.
///
/// The host makes it. Any thread but a stage's may use it, and nothing in it makes the run wait.
public protocol RunControl: AnyObject, Sendable {
    /// What people call the chain: its file's name without folder and `.json`.
    var chainName: String { get }
    /// The chain's folder, where relative paths in a service's options start.
    var folder: String { get }
    /// The chain's clock.
    var clock: ChainClock { get }

    /// The chain file that would make what runs now.
    ///
    /// Live options have their present values. `--set` is not applied, values of the environment are not filled in, and
    /// the options of services are left out.
    var chain: JSONNode { get }
    /// The plan, as `framehost check --json` prints it.
    var plan: JSONNode { get }
    /// The figures, as `--stats` writes them.
    var figures: JSONNode { get }
    /// Figures for programs that draw them, times as histograms; see ``Chain/metrics``.
    var metrics: JSONNode { get }
    /// What the chain and its stages are doing.
    var status: ChainStatus { get }
    /// The stage types in the chain, by id, as `framehost describe --json` prints them.
    var kinds: JSONNode { get }

    /// Listens to all events from now on.
    ///
    /// - Parameter capacity: Events that wait for this listener before it loses the oldest.
    func subscribe(capacity: Int) -> EventSubscription
    /// An event as `--events` writes it.
    func json(of event: Event) -> JSONNode
    /// Posts an event of the service itself, which belongs to no stage.
    func post(_ event: String, level: Event.Level, text: String, details: JSONNode)

    /// Whether pictures of this stage are original: a privacy stage behind it, or behind what feeds it, has not covered
    /// them (docs/design/047-originals.md).
    func showsOriginals(_ stage: String) -> Bool
    /// Whether a command shows or records originals, or changes what is hidden, so that its sender needs the right
    /// `originals`.
    func needsOriginals(_ command: JSONNode) -> Bool

    /// Carries out a command, one of those that `--commands` reads (docs/chain-file.md).
    ///
    /// - Parameters:
    ///   - command: The command's JSON object.
    ///   - reply: Called once, now or later, on any thread; must not wait.
    func perform(_ command: JSONNode, reply: @escaping CommandReply)

    /// Asks for the next picture that a stage gives. It comes to `inbox`.
    ///
    /// - Throws: ``FrameHostError`` when there is no such stage, when the stage gives no pictures, or with code
    ///   `.exhausted`.
    func askPicture(of stage: String, for inbox: PictureInbox) throws
    /// Lets the access units of a stage come to `inbox`; see ``Chain/watchUnits(of:for:)``.
    ///
    /// - Throws: ``FrameHostError`` when there is no such stage, or when it gives no access units.
    func watchUnits(of stage: String, for inbox: UnitInbox) throws -> EncodedFormat
    /// Ends ``watchUnits(of:for:)``.
    func unwatchUnits(of stage: String, for inbox: UnitInbox)
    /// Asks a stage for a keyframe as soon as possible; false where no stage makes one when asked.
    @discardableResult
    func requestKeyframe(of stage: String) -> Bool

    /// Encodes a picture as a file. This takes a while: do not call it on a thread that serves many clients.
    ///
    /// - Throws: ``FrameHostError`` with code `.unavailable` where no plugin can, or what the plugin throws.
    func encode(_ picture: StagePicture, as form: PictureForm) throws -> [UInt8]
}
