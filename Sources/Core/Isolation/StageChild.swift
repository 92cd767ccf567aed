// SPDX-License-Identifier: Apache-2.0

internal import CStageLink
import Glibc

/// The process of an isolated stage: runs one stage, which cannot tell, and answers the host's calls. [main thread]
///
/// What it does wrong ends this process and no other; so nothing here is caught that a plugin could cause.
public enum StageChild {
    /// Runs until the host lets it go.
    ///
    /// - Parameters:
    ///   - parent: The host's process, with which this one ends.
    ///   - sandbox: What this process may not do.
    ///   - find: Loads the stage type `type` of the plugin file `plugin`.
    /// - Returns: The exit status: 0 if the host has let it go.
    public static func run(
        parent: Int32, sandbox: String, find: (_ plugin: String, _ type: String) throws -> StageType
    ) -> Int32 {
        guard confine(parent, sandbox) else { return 3 }
        do {
            let side = try ChildSide()
            do {
                let make = try side.hear()
                try side.make(make, find)
                if make["starts"]?.asBool != true { _ = try side.hear() }
                try side.start()
            } catch {
                side.say(LinkWords.words(error))
                return 4
            }
            side.serve()
            return 0
        } catch {
            let text = Array("\(FrameHostError.wrap(error))\n".utf8)
            _ = write(STDERR_FILENO, text, text.count)
            return 5
        }
    }
}

extension StageChild {
    /// Ties this process to the host, and gives up what the sandbox forbids. Nothing of it can be had again.
    private static func confine(_ parent: Int32, _ sandbox: String) -> Bool {
        guard let sandbox = IsolationRequest.Sandbox(rawValue: sandbox), fh_follow_parent(parent) == 0 else {
            return false
        }
        if sandbox == .none || fh_forbid_network() == 0 { return true }
        let text = Array(
            "the sandbox cannot be set up: seccomp: \(String(cString: strerror(errno))); \"sandbox\": \"none\" goes without\n"
                .utf8)
        _ = write(STDERR_FILENO, text, text.count)
        return false
    }

    /// [main thread] Ties this process to the host, and becomes the program that a stage in another language is.
    ///
    /// - Returns: The exit status, only if that fails.
    public static func become(_ arguments: [String], parent: Int32, sandbox: String) -> Int32 {
        guard confine(parent, sandbox) else { return 3 }
        guard let program = arguments.first else { return 2 }
        let words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        execvp(program, words)
        let text = Array("\(program): \(String(cString: strerror(errno)))\n".utf8)
        _ = write(STDERR_FILENO, text, text.count)
        return 127
    }
}

/// What the process has: the link, its stage, and the frames that it was handed.
private final class ChildSide {
    private let control: SharedBlock
    private let asked: UnsafeMutablePointer<fh_call>
    private let answer: UnsafeMutablePointer<fh_reply>
    private let calls: UnsafeMutablePointer<UInt32>
    private let replies: UnsafeMutablePointer<UInt32>
    private let callText: UnsafeMutablePointer<UInt8>
    private let replyText: UnsafeMutablePointer<UInt8>
    private var instance: StageInstance?
    private var filter: (any Filter)?
    private var pool: FramePool?
    private var metadata: CarriedMetadata?
    private var events: EventSubscription?
    private var jobs: JobQueue?
    private var reporter: NamedThread?

    init() throws {
        control = try SharedBlock(Int32(FH_LINK_CONTROL), byteCount: Int(fh_control_bytes))
        let head = OpaquePointer(control.base)
        guard fh_control_version(head) == UInt32(FH_LINK_VERSION) else {
            throw FrameHostError(
                .broken,
                what:
                    "the host speaks version \(fh_control_version(head)) of the stage link, and this is version \(FH_LINK_VERSION)"
            )
        }
        (calls, replies) = (fh_calls(head, 0), fh_replies(head, 0))
        (asked, answer) = (fh_call_of(head, 0), fh_reply_of(head, 0))
        callText = fh_call_text(head, 0)
        replyText = fh_reply_text(head, 0)
    }

    // MARK: The socket

    /// Waits for a message of the host. Without one the host is gone, and so is this process.
    func hear() throws -> JSONNode {
        var bytes = [UInt8](repeating: 0, count: Int(FH_LINK_MESSAGE))
        let count = SystemCall.retrying { recv(Int32(FH_LINK_SOCKET), &bytes, bytes.count, 0) }
        guard count > 0 else { exit(0) }
        return try JSONReader.read(Array(bytes[..<count]), file: "host")
    }

    /// [any thread] What is too long is left out.
    func say(_ message: JSONNode) { Self.say(message) }

    fileprivate static func say(_ message: JSONNode) {
        let bytes = Array(message.text().utf8)
        guard bytes.count <= Int(FH_LINK_MESSAGE) else { return }
        _ = SystemCall.retrying { send(Int32(FH_LINK_SOCKET), bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
    }

    // MARK: The stage

    func make(_ words: JSONNode, _ find: (_ plugin: String, _ type: String) throws -> StageType) throws {
        guard let plugin = words["plugin"]?.asString, let id = words["type"]?.asString,
            let stage = words["stage"]?.asString, let folder = words["folder"]?.asString,
            let chain = words["chain"]?.asString, let format = words["format"].flatMap(LinkWords.format),
            let count = words["buffers"]?.asInt, (1...64).contains(count), let options = words["options"]?.asObject
        else { throw FrameHostError(.broken, what: "the host's brief is not whole") }
        let type = try find(plugin, id)
        NamedThread.dress(name: stage, isBatch: false)
        let (events, clock) = (EventHub(), ChainClock())
        let jobs = JobQueue(events: events, clock: clock)
        let context = StageContext(
            stageID: stage, folder: folder, chainName: chain, clock: clock, stop: StopSignal(), events: events,
            jobs: jobs)
        self.jobs = jobs
        context.isLiveChain = words["isLive"]?.asBool ?? false
        context.inputIDs = (words["inputs"]?.asArray ?? []).compactMap(\.asString)
        let instance = try type.make(options, { key, _ in FaultPlace(key) }, context)
        _ = try instance.negotiate([.video(format)])
        guard let filter = instance.stage as? any Filter else {
            throw FrameHostError(
                .broken, what: "'\(id)' must be a filter to run in a process of its own",
                remedy: "This is a bug of framehost: report it, with the chain file.")
        }
        let layout = MetadataLayout(type.info.metadata)
        context.layout = layout
        metadata = CarriedMetadata(type.info.metadata, layout)
        let bytes = BufferLayout(format).byteCount
        let block = try SharedBlock(Int32(FH_LINK_BUFFERS), byteCount: bytes * count)
        pool = try FramePool(
            name: stage, format: format, bufferCount: count, leasesPerBuffer: 4, metadata: layout,
            memory: MappedMemory(block: block), stop: context.stop, clock: clock)
        (self.instance, self.filter) = (instance, filter)
        self.events = events.subscribe()
        // They are told with what follows.
        _ = self.events?.take()
        say([
            "negotiated": LinkWords.words(instance.demand),
            "notes": .array(
                context.planNotes.map { ["text": .string($0.text), "isWarning": .bool($0.isWarning)] }),
        ])
    }

    func start() throws {
        guard let instance, let events else { return }
        try instance.stage.start()
        let context = instance.context
        // Its last acts are those of a thread that nobody waits for.
        reporter = try? NamedThread("events") { Self.report(events, context) }
        say(["ready": true])
    }

    /// Tells the host what happens, and twice a second what has changed.
    private static func report(_ events: EventSubscription, _ context: StageContext) {
        var told: JSONNode?
        while true {
            _ = events.wait(seconds: 0.5)
            let (new, lost) = events.take()
            for event in new where event.name != "note" { say(LinkWords.words(event)) }
            if lost > 0 { say(["lost": .number(lost)]) }
            let state: JSONNode = [
                "state": true, "recovering": context.recovering.map { .string($0) } ?? .null,
                "impairment": context.impairment.map { .string($0) } ?? .null, "figures": context.figures ?? .null,
            ]
            if state != told { say(state) }
            told = state
        }
    }

    // MARK: Calls

    /// Answers calls until the host stops the stage.
    func serve() {
        var count: UInt32 = 0
        while true {
            while fh_load(calls) == count { fh_wait(calls, count, 1_000_000_000) }
            count &+= 1
            let call = asked.pointee
            answer.pointee = fh_reply()
            switch fh_op(rawValue: call.op) {
            case FH_OP_FRAME: process(call)
            case FH_OP_SET: reply { try self.set(self.words(call)) }
            case FH_OP_COMMAND: reply { try self.command(self.words(call)) }
            case FH_OP_RELEASE_CACHES: reply { self.instance?.stage.releaseCaches() }
            case FH_OP_STOP:
                reply { try self.instance?.stop() }
                // Such as a file of what was set last. The host waits five seconds.
                _ = jobs?.waitUntilIdle(atMost: 4_000_000_000)
                tellLast()
            default: reply { throw FrameHostError(.broken, what: "the host asks for what this process cannot do") }
            }
            answer.pointee.held = pool?.leasedBits ?? 0
            fh_store(replies, count)
            fh_wake(replies)
            if call.op == FH_OP_STOP.rawValue { return }
        }
    }

    private func process(_ call: fh_call) {
        guard let pool, let filter, let instance, var frame = pool.lease(buffer: Int32(call.buffer)) else {
            return reply { throw FrameHostError(.broken, what: "the host names a buffer that is in use") }
        }
        call.item.fill(&frame.record.pointee.header)
        metadata?.read(callText, present: call.item.metadata, into: &frame.record.pointee.header)
        instance.context.item.set(frame.sequenceNumber, pts: frame.pts)
        frame.record.pointee.hand(to: instance.keeper.cell)
        do {
            switch try filter.process(&frame) {
            case .forward: answer.pointee.verdict = FH_FORWARD.rawValue
            case .drop(let reason):
                answer.pointee.verdict = FH_DROP.rawValue
                answer.pointee.reason = UInt32(reason.rawValue)
            }
        } catch {
            reply { throw error }
        }
        if answer.pointee.verdict != FH_FAILED.rawValue {
            let present = metadata?.write(frame.record.pointee.header, to: replyText) ?? 0
            answer.pointee.item = fh_item(frame.record.pointee.header, metadata: present)
        }
        _ = consume frame
    }

    private func words(_ call: fh_call) throws -> JSONNode {
        try JSONReader.read(
            Array(UnsafeBufferPointer(start: callText, count: min(Int(call.text_bytes), Int(FH_LINK_TEXT)))),
            file: "host")
    }

    private func set(_ words: JSONNode) throws { try instance?.set(words.asObject ?? []) { key, _ in FaultPlace(key) } }

    private func command(_ words: JSONNode) throws {
        try instance?.stage.command(words["name"]?.asString ?? "", arguments: words["arguments"] ?? [:])
    }

    private func reply(_ body: () throws -> Void) {
        do {
            try body()
            answer.pointee.verdict = FH_DONE.rawValue
        } catch {
            let text = Array(LinkWords.words(error).text().utf8.prefix(Int(FH_LINK_TEXT)))
            replyText.update(from: text, count: text.count)
            answer.pointee.text_bytes = UInt32(text.count)
            answer.pointee.verdict = FH_FAILED.rawValue
        }
    }

    /// What the stage said in its last moments.
    private func tellLast() {
        for event in events?.take().events ?? [] where event.name != "note" { say(LinkWords.words(event)) }
        if let figures = instance?.context.figures { say(["state": true, "figures": figures]) }
    }
}
