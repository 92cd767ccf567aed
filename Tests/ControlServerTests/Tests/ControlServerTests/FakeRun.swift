// SPDX-License-Identifier: Apache-2.0

@testable import ControlServer
@testable import FrameCore
import Foundation
import FrameSupport
import ServerAccess

/// A run that is none: it notes what it is asked for and answers what a test wants.
final class FakeRun: RunControl {
    struct State {
        var commands: [JSONNode] = []
        var answer: @Sendable (JSONNode) -> CommandAnswer? = { node in
            CommandAnswer(stage: node["stage"]?.asString, frame: 42)
        }
        var status = ChainStatus(
            state: .streaming,
            stages: [
                ChainStatus.Stage(id: "cam", state: .streaming, reason: ""),
                ChainStatus.Stage(id: "text", state: .paused, reason: ""),
            ], problems: [])
        var chain = FakeRun.node(
            #"{"control":{"listen":"127.0.0.1:0"},"stages":[{"id":"cam","use":"test-source"},{"id":"text","use":"text"}]}"#
        )
        var metrics = FakeRun.node(FakeRun.metricsText)
        /// Stages whose pictures are original.
        var originals: Set<String> = []
        /// Names of commands that need the right `originals`.
        var originalCommands: Set<String> = []
        /// What is posted by the service.
        var posted: [String] = []
        /// Gives a picture of these stages at once.
        var givers: Set<String> = ["cam"]
        var asked = 0
        var encoded: [PictureForm] = []
        /// Its pictures are mirrored in previews.
        var facesWhoLooks = false
        /// What each file of a picture has besides.
        var padding = 0
        /// Whoever has a picture encoded waits.
        var isEncoderBusy = false
        /// The number of the next picture.
        var nextPicture: UInt64 = 0
        /// Who asked each stage last.
        var inboxes: [String: PictureInbox] = [:]
        /// Of the stage `h264`.
        var watchers: [UnitInbox] = []
        var watched = 0
        var keyframesAsked: Int { keyframeTimes.count }
        /// System clock of each request.
        var keyframeTimes: [Int64] = []
        var makesKeyframes = true
        /// The last unit found no room in an inbox.
        var isBehindGap = false
        var format = EncodedFormat(
            codec: .h264, parameterSets: [0, 0, 0, 1, 0x67, 1, 0, 0, 0, 1, 0x68, 2],
            video: VideoFormat(.i420, width: 640, height: 360, frameRate: Rational(30)))
    }

    let state = Locked(State())
    let hub = EventHub()
    let chainName = "demo"
    let folder: String
    let clock = ChainClock()

    init(folder: String = "/") { self.folder = folder }

    static func node(_ text: String) -> JSONNode {
        (try? JSONReader.read(Array(text.utf8), file: "test")) ?? .null
    }

    var chain: JSONNode { state.withLock { $0.chain } }
    var plan: JSONNode { ["stages": [], "links": []] }
    var figures: JSONNode { ["stages": [["id": "cam", "framesOut": 7]]] }
    var metrics: JSONNode { state.withLock { $0.metrics } }
    var status: ChainStatus { state.withLock { $0.status } }
    var kinds: JSONNode { ["test-source": ["id": "test-source"]] }

    func subscribe(capacity: Int) -> EventSubscription { hub.subscribe(capacity: capacity) }
    func json(of event: Event) -> JSONNode { ["event": .string(event.name), "text": .string(event.text)] }
    func post(_ event: String, level: Event.Level, text: String, details: JSONNode) {
        state.withLock { $0.posted.append(event + " " + details.text()) }
        hub.post(Event(name: event, level: level, text: text, details: details, time: clock.now()))
    }

    func perform(_ command: JSONNode, reply: @escaping CommandReply) {
        let answer = state.withLock { state in
            state.commands.append(command)
            return state.answer
        }
        if let given = answer(command) { reply(given) }
    }

    var commands: [String] { state.withLock { $0.commands.map { $0.withoutPlaces.text() } } }

    func askPicture(of stage: String, for inbox: PictureInbox) throws {
        let gives = try state.withLock { state in
            state.asked += 1
            state.inboxes[stage] = inbox
            guard ["cam", "text"].contains(stage) else {
                throw FrameHostError(.invalidConfiguration, place: stage, what: "no such stage", reason: .noSuchStage)
            }
            return state.givers.contains(stage)
        }
        if gives { try givePicture(of: stage) }
    }

    /// The stage gives who asked it last a picture.
    func givePicture(of stage: String) throws {
        let picture = try StagePicture(VideoFormat(.i420, width: 16, height: 16, frameRate: Rational(30)))
        let inbox = state.withLock { state in
            picture.isMirroredInPreviews = state.facesWhoLooks
            picture.sequenceNumber = state.nextPicture
            state.nextPicture += 1
            return state.inboxes[stage]
        }
        inbox?.put(stage, picture)
    }

    func watchUnits(of stage: String, for inbox: UnitInbox) throws -> EncodedFormat {
        try state.withLock { state in
            guard stage == "h264" else {
                throw FrameHostError(.invalidConfiguration, place: "\(stage)", what: "gives no access units")
            }
            state.watchers.removeAll { $0 === inbox }
            state.watchers.append(inbox)
            state.watched += 1
            return state.format
        }
    }

    func unwatchUnits(of stage: String, for inbox: UnitInbox) {
        state.withLock { $0.watchers.removeAll { $0 === inbox } }
    }

    func requestKeyframe(of stage: String) -> Bool {
        state.withLock { state in
            state.keyframeTimes.append(MonotonicTime.now())
            return state.makesKeyframes
        }
    }

    /// The stage `h264` gives a unit to whoever watches.
    func give(_ number: UInt64, isKeyframe: Bool, bytes: [UInt8]? = nil, followsGap: Bool = false) {
        var header = StageUnit.Header()
        header.sequenceNumber = number
        header.isKeyframe = isKeyframe
        header.pts = MediaTime(nanoseconds: Int64(number) * 33_000_000)
        header.dts = header.pts
        header.capturedAt = clock.now()
        let bytes = bytes ?? [0, 0, 0, 1, isKeyframe ? 0x65 : 0x41, UInt8(truncatingIfNeeded: number)]
        let (watchers, isBehindGap) = state.withLock { ($0.watchers, $0.isBehindGap) }
        let areTaken = watchers.map { inbox in
            bytes.withUnsafeBytes { inbox.put("h264", header, $0, followsGap: followsGap || isBehindGap) }
        }
        state.withLock { $0.isBehindGap = areTaken.contains(false) }
    }

    func showsOriginals(_ stage: String) -> Bool { state.withLock { $0.originals.contains(stage) } }

    func needsOriginals(_ command: JSONNode) -> Bool {
        state.withLock { $0.originalCommands.contains(command["command"]?.asString ?? "set") }
    }

    func encode(_ picture: StagePicture, as form: PictureForm) throws -> [UInt8] {
        let padding = state.withLock { state in
            state.encoded.append(form)
            return state.padding
        }
        while state.withLock(\.isEncoderBusy) { usleep(200) }
        return Array("picture \(form.width ?? 0)".utf8) + [UInt8](repeating: 32, count: padding)
    }

    /// The shape of Chain.metrics.
    static let metricsText = """
        {"stages":[
          {"id":"cam","use":"test-source","kind":"source","framesIn":0,"framesOut":10,"delivered":0,"dropped":{},"held":1,
           "heldLimit":3,"heldOldestSeconds":0.01,"pixelCopies":0,
           "busy":{"count":10,"sumSeconds":0.02,"buckets":[{"le":1e-05,"count":0},{"le":0.001,"count":4},{"le":3,"count":10}]}},
          {"id":"te\\"xt","use":"text","kind":"filter","framesIn":10,"framesOut":9,"delivered":0,"dropped":{"queue-full":1},
           "held":0,"heldLimit":2,"heldOldestSeconds":0,"pixelCopies":2,
           "figures":{"readers":{"playing":3,"names":["a"]},"bitrateKbps":812.5,"mode":"x","isSecure":true}}],
         "links":[{"from":"cam","to":"te\\"xt","depth":0,"capacity":4,"offered":10,"dropped":{"oldest":1}},
                  {"from":"cam","to":"te\\"xt","depth":1,"capacity":4,"offered":10,"dropped":{},"replaced":7}],
         "pools":[{"name":"cam","buffers":6,"free":4,"min":2,"need":5,"bytes":8294400,"starvedSeconds":0.25}]}
        """
}

extension ControlAPI {
    /// An API over a fake run, without its threads.
    static func over(
        _ run: FakeRun, listen: String = "127.0.0.1:8080", hosts: [String] = [], token: String? = nil,
        desk: LoginDesk? = nil
    ) -> ControlAPI {
        let address = ListenAddress(listen)!
        return ControlAPI(
            control: run,
            gate: Gate(
                address: address, port: address.port, hosts: hosts,
                desk: desk ?? LoginDesk(token: token.flatMap { AccessToken($0) })),
            pictures: PictureRequests(run), units: try! UnitFanOut(run), events: EventRing(run: "run"),
            rates: RateWatch(run))
    }

    /// The answer with a picture. None within a second is an answer too: then it asks again, for a minute at most.
    func askPicture(_ target: String) async -> Asked {
        let deadline = Date() + 60
        while true {
            let asked = await ask("GET", target)
            if asked.status != 204 || Date() > deadline { return asked }
        }
    }

    /// The answer to a request of a program on this machine.
    func ask(_ method: String, _ target: String, body: String? = nil, fields: [String: String] = [:]) async -> Asked {
        var head = RequestHead(method: method, target: target, host: "127.0.0.1:8080")
        head.fields = fields.map { ($0.key, $0.value) }
        if let body {
            if fields["content-type"] == nil { head.fields.append(("content-type", "application/json")) }
            head.fields.append(("content-length", "\(body.utf8.count)"))
        }
        return Asked(await answer(head, judge(head)) { _ in Array((body ?? "").utf8) })
    }

    func answer(_ head: RequestHead, readBody: (_ most: Int) async throws -> [UInt8] = { _ in [] }) async -> Answer {
        await answer(head, judge(head), readBody: readBody)
    }
}

extension Gate {
    init(address: ListenAddress, port: Int, hosts: [String], token: AccessToken?) {
        self.init(address: address, port: port, hosts: hosts, desk: LoginDesk(token: token))
    }

    /// Why a request is refused; nil where it is allowed.
    func refusal(of head: RequestHead, room: Room = .api) -> Refusal? {
        if case .failure(let refusal) = judge(head, room: room) { refusal } else { nil }
    }
}

extension PictureRequests {
    /// For somebody who may see everything.
    func next(
        of stage: String, as form: PictureForm, isPreview: Bool = false, after delay: Int64 = 0, patience: Int64
    ) async -> Outcome {
        await next(of: stage, as: form, isPreview: isPreview, after: delay, patience: patience) { _, _ in nil }
    }
}

extension UnitFanOut {
    /// For somebody who may see everything.
    func watch(_ stage: String, _ codec: Codec, give: @escaping Give) -> Int {
        watch(stage, codec, permit: { _, _ in nil }, give: give)
    }
}

/// An answer as a test looks at it.
struct Asked {
    let answer: Answer
    init(_ answer: Answer) { self.answer = answer }

    var status: Int { answer.status }
    var text: String {
        switch answer.body {
        case .bytes(let bytes): String(decoding: bytes, as: UTF8.self)
        case .piece(let piece): String(decoding: piece.bytes, as: UTF8.self)
        default: ""
        }
    }
    var json: JSONNode { FakeRun.node(text) }
    func field(_ name: String) -> String? { answer.fields.first { $0.name == name }?.value }
    var what: String { json["error"]?["what"]?.asString ?? "" }
    var remedy: String { json["error"]?["remedy"]?.asString ?? "" }
}
