// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore
import FrameSupport
@testable import ONVIF
import ServerAccess

/// A run that is none: a camera, motion, faces, a mask, two encoders and their sinks.
final class FakeChain: RunControl {
    struct State {
        var plan = FakeChain.node(FakeChain.planText)
        var chain = FakeChain.node(FakeChain.chainText)
        var formats: [String: EncodedFormat] = [
            "enc": FakeChain.format(1280, 720), "small": FakeChain.format(640, 360),
        ]
        var originals: Set<String> = ["cam"]
        var posted: [String] = []
        var asked: [String] = []
        var keyframes: [String] = []
        /// Stages that give a picture when asked.
        var givers: Set<String> = ["hide", "half"]
        /// Becomes original while its picture is on the way.
        var turnsOriginal: String?
    }

    let state = Locked(State())
    let hub = EventHub()
    let chainName = "front door"
    let folder: String
    let clock: ChainClock

    init(folder: String = "/", clock: ChainClock = ChainClock()) { (self.folder, self.clock) = (folder, clock) }

    static func node(_ text: String) -> JSONNode { (try? JSONReader.read(Array(text.utf8), file: "test")) ?? .null }

    static func format(_ width: Int, _ height: Int, _ codec: Codec = .h264) -> EncodedFormat {
        EncodedFormat(
            codec: codec, parameterSets: [0, 0, 0, 1, 0x67, 100, 0, 31, 0, 0, 0, 1, 0x68, 2],
            video: VideoFormat(.i420, width: width, height: height, frameRate: Rational(25)), bitrateKbps: 4000)
    }

    static let planText = """
        {"stages":[{"id":"cam","use":"v4l2-source","kind":"source"},{"id":"moves","use":"motion-detect","kind":"filter"},
          {"id":"who","use":"face-effect","kind":"filter"},{"id":"hide","use":"mask","kind":"filter"},
          {"id":"half","use":"crop-orient","kind":"transform"},{"id":"enc","use":"x264-encoder","kind":"transform"},
          {"id":"small","use":"x264-encoder","kind":"transform"},{"id":"sub","use":"rtsp-sink","kind":"sink"},
          {"id":"main","use":"rtsp-sink","kind":"sink"}],
         "links":[{"from":"cam","to":"moves"},{"from":"moves","to":"who"},{"from":"who","to":"hide"},
          {"from":"hide","to":"enc"},{"from":"hide","to":"half"},{"from":"half","to":"small"},
          {"from":"small","to":"sub"},{"from":"enc","to":"main"}]}
        """

    static let chainText = """
        {"stages":[{"use":"v4l2-source","id":"cam"},{"use":"motion-detect","id":"moves"},{"use":"face-effect","id":"who"},
          {"use":"mask","id":"hide"},{"use":"x264-encoder","id":"enc","bitrateKbps":2500,"keyframeSeconds":4},
          {"use":"crop-orient","id":"half"},{"use":"x264-encoder","id":"small"},
          {"use":"rtsp-sink","id":"sub","path":"/sub","users":"people"},
          {"use":"rtsp-sink","id":"main","port":9554,"path":"/main","users":"people"}]}
        """

    var chain: JSONNode { state.withLock { $0.chain } }
    var plan: JSONNode { state.withLock { $0.plan } }
    var figures: JSONNode { [:] }
    var metrics: JSONNode { [:] }
    var status: ChainStatus { ChainStatus(state: .streaming, stages: [], problems: []) }
    var kinds: JSONNode {
        Self.node(
            """
            {"rtsp-sink":{"options":[{"name":"port","default":8554},{"name":"path","default":"/live"},
              {"name":"users","default":null}]},
             "x264-encoder":{"options":[{"name":"keyframeSeconds","default":2}]}}
            """)
    }

    func subscribe(capacity: Int) -> EventSubscription { hub.subscribe(capacity: capacity) }
    func json(of event: Event) -> JSONNode { ["event": .string(event.name)] }
    func post(_ event: String, level: Event.Level, text: String, details: JSONNode) {
        state.withLock { $0.posted.append("\(event): \(text)") }
    }
    func perform(_ command: JSONNode, reply: @escaping CommandReply) {}

    func showsOriginals(_ stage: String) -> Bool { state.withLock { $0.originals.contains(stage) } }
    func needsOriginals(_ command: JSONNode) -> Bool { false }

    func askPicture(of stage: String, for inbox: PictureInbox) throws {
        let picture = try StagePicture(VideoFormat(.i420, width: 16, height: 16, frameRate: Rational(25)))
        let gives = state.withLock { state in
            state.asked.append(stage)
            if state.turnsOriginal == stage { state.originals.insert(stage) }
            return state.givers.contains(stage)
        }
        if gives { inbox.put(stage, picture) }
    }

    func watchUnits(of stage: String, for inbox: UnitInbox) throws -> EncodedFormat {
        guard let format = state.withLock({ $0.formats[stage] }) else {
            throw FrameHostError(.invalidConfiguration, place: "\(stage)", what: "gives no encoded video")
        }
        return format
    }
    func unwatchUnits(of stage: String, for inbox: UnitInbox) {}
    func requestKeyframe(of stage: String) -> Bool {
        state.withLock { $0.keyframes.append(stage) }
        return true
    }
    func encode(_ picture: StagePicture, as form: PictureForm) throws -> [UInt8] { Array("picture".utf8) }

    /// What the device is.
    func facts(users: String? = "people") throws -> (facts: DeviceFacts, left: Set<FactsReader.LeftOut>) {
        var facts = DeviceFacts(
            name: chainName, location: "Porch <1>",
            identity: DeviceIdentity(machine: "m", chain: chainName, port: 8000))
        var formats = FactsReader.Formats()
        let left = FactsReader(control: self, audience: Audience(users: users), inbox: try UnitInbox(byteCount: 1))
            .read(
                into: &facts, serving: [:], formats: &formats)
        return (facts, left)
    }
}

/// A device without sockets, with the user `anna` and her password `secret`, and a client of it.
final class FakeDevice: Sendable {
    /// 2026-11-30 12:00:00.
    static let time: Int64 = 1_796_040_000
    let run: FakeChain
    let endpoint: DeviceEndpoint
    let desk = EventDesk()
    let snapshots: Snapshots

    init(users: Credentials? = Credentials(["anna": "secret"])) throws {
        run = FakeChain()
        let run = run
        snapshots = Snapshots(run)
        let facts = try run.facts().facts
        desk.setStages(
            [.motion: facts.motionStages, .faces: facts.faceStages], wall: Self.time, now: MonotonicTime.now())
        endpoint = DeviceEndpoint(
            facts: Locked(facts), login: Locked(LoginCheck(users: users)),
            media: MediaService { _ = run.requestKeyframe(of: $0) }, events: EventService(desk: desk),
            snapshots: snapshots, port: 8000, wall: { Self.time })
    }

    static func envelope(_ body: String, header: String = "") -> String {
        """
        <?xml version="1.0" encoding="utf-8"?><s:Envelope xmlns:s="http://www.w3.org/2003/05/soap-envelope">\
        <s:Header>\(header)</s:Header><s:Body>\(body)</s:Body></s:Envelope>
        """
    }

    static func security(
        _ name: String = "anna", password: String = "secret", nonce: String, time: Int64 = time
    ) -> String {
        let created = XMLTime.text(time)
        let nonce = Base64.encode(Array(nonce.utf8))
        let digest = UsernameToken.digest(nonce: nonce, created: created, password: password) ?? ""
        return """
            <w:Security xmlns:w="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd">\
            <w:UsernameToken><w:Username>\(name)</w:Username>\
            <w:Password Type="http://docs.oasis-open.org/wss/2004/01/x#PasswordDigest">\(digest)</w:Password>\
            <w:Nonce>\(nonce)</w:Nonce><Created xmlns="u">\(created)</Created></w:UsernameToken></w:Security>
            """
    }

    private let number = Locked(0)

    /// Asks with a login.
    func ask(_ body: String, path: String = ServicePath.device) throws -> DeviceAnswer {
        let nonce = number.withLock { number in
            number += 1
            return "nonce \(number)"
        }
        return try send(Self.envelope(body, header: Self.security(nonce: nonce)), path: path)
    }

    func send(_ text: String, path: String = ServicePath.device, host: String? = "192.0.2.7:8000") throws
        -> DeviceAnswer
    {
        var request = DeviceRequest(method: "POST", target: path, host: host)
        request.body = Array(text.utf8)
        return try answer(request)
    }

    /// Waits for an answer that comes later.
    func answer(_ request: DeviceRequest) throws -> DeviceAnswer {
        switch endpoint.answer(request) {
        case .now(let answer): return answer
        case .later(let start):
            let got = Locked<DeviceAnswer?>(nil)
            let isThere = WaitableFlag()
            _ = start { answer in
                got.withLock { $0 = answer }
                isThere.raise()
            }
            isThere.wait(milliseconds: 60_000)
            return got.withLock { $0 } ?? DeviceAnswer(status: 0)
        }
    }
}

extension DeviceAnswer {
    var text: String { String(decoding: body, as: UTF8.self) }
    /// The content of the body's element.
    var node: XMLElement? { try? XMLReader.read(body)["Body"]?.children.first }
    /// The most exact code of a fault.
    var fault: String? {
        var code = node.flatMap { $0.name == "Fault" ? $0["Code"] : nil }
        while let below = code?["Subcode"] { code = below }
        return code?["Value"]?.value
    }
}

extension XMLElement {
    /// The first element of this name, at any depth.
    func find(_ wanted: String) -> XMLElement? {
        if name == wanted { return self }
        for child in children { if let found = child.find(wanted) { return found } }
        return nil
    }

    func all(_ wanted: String) -> [XMLElement] {
        (name == wanted ? [self] : []) + children.flatMap { $0.all(wanted) }
    }
}
