// SPDX-License-Identifier: Apache-2.0

import FrameCore
import ServerAccess

/// Feeds any bytes to an ONVIF device: requests with any body, composed ones with any tokens, logins, datagrams. What
/// needs a login is never answered without, every answer is well-formed XML of a bounded size, and what is kept is
/// bounded.
///
/// Built with the folders of the service but its sockets in one module, without a package: see `make fuzz`.
@c(LLVMFuzzerTestOneInput)
public func fuzzONVIF(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(UnsafeBufferPointer(start: bytes, count: count))
    switch input.byte() % 6 {
    case 0: raw(&input, Devices.open)
    case 1: raw(&input, Devices.closed)
    case 2: composed(&input)
    case 3: login(&input)
    case 4: datagram(input.rest)
    default: texts(input.rest)
    }
    return 0
}

private struct FuzzInput {
    var rest: [UInt8]
    init(_ bytes: UnsafeBufferPointer<UInt8>) { rest = Array(bytes) }
    mutating func byte() -> UInt8 { rest.isEmpty ? 0 : rest.removeFirst() }
    /// Up to `most` bytes as text.
    mutating func text(_ most: Int) -> String {
        let count = min(Int(byte()) % (most + 1), rest.count)
        defer { rest.removeFirst(count) }
        return String(decoding: rest[..<count], as: UTF8.self)
    }
}

/// A run that gives no pictures.
private final class NoRun: RunControl {
    let (chainName, folder, clock) = ("fuzz", "/", ChainClock())
    var chain: JSONNode { [:] }
    var plan: JSONNode { [:] }
    var figures: JSONNode { [:] }
    var metrics: JSONNode { [:] }
    var status: ChainStatus { fatalError("nothing asks for it") }
    var kinds: JSONNode { [:] }
    func subscribe(capacity: Int) -> EventSubscription { fatalError("nothing listens") }
    func json(of event: Event) -> JSONNode { [:] }
    func post(_ event: String, level: Event.Level, text: String, details: JSONNode) {}
    func showsOriginals(_ stage: String) -> Bool { stage == "cam" }
    func needsOriginals(_ command: JSONNode) -> Bool { true }
    func perform(_ command: JSONNode, reply: @escaping CommandReply) {}
    func askPicture(of stage: String, for inbox: PictureInbox) throws {}
    func watchUnits(of stage: String, for inbox: UnitInbox) throws -> EncodedFormat {
        throw FrameHostError(.unavailable, what: "nothing")
    }
    func unwatchUnits(of stage: String, for inbox: UnitInbox) {}
    func requestKeyframe(of stage: String) -> Bool { false }
    func encode(_ picture: StagePicture, as form: PictureForm) throws -> [UInt8] { [] }
}

private enum Devices {
    static let wall: Int64 = 1_796_040_000
    static let desk = EventDesk()
    static let open = make(nil)
    static let closed = make(Credentials(["anna": "secret"]))

    static func make(_ users: Credentials?) -> DeviceEndpoint {
        desk.setStages([.motion: ["moves": "cam"], .faces: ["who": "cam"]], wall: wall, now: 0)
        return DeviceEndpoint(
            facts: Locked(facts), login: Locked(LoginCheck(users: users, key: [1])),
            media: MediaService { _ in }, events: EventService(desk: desk), snapshots: Snapshots(NoRun()),
            port: 8000, wall: { wall })
    }

    static var facts: DeviceFacts {
        var facts = DeviceFacts(
            name: "fuzz <&>", location: "here", identity: DeviceIdentity(machine: "m", chain: "c", port: 8000))
        for (id, codec, width) in [("main", Codec.h264, 1280), ("sub", .h265, 640)] {
            facts.streams.append(
                StreamFacts(
                    id: id, port: 8554, path: "/\(id)", isSecure: false, codec: codec, width: width, height: 360,
                    rate: Rational(25), bitrateKbps: 1000, unitStage: "enc", pictureStage: id == "main" ? "hide" : nil,
                    source: "cam"))
        }
        return facts
    }
}

/// Asks, and looks at the answer.
@discardableResult private func ask(_ device: DeviceEndpoint, _ request: DeviceRequest) -> DeviceAnswer? {
    switch device.answer(request) {
    case .now(let answer):
        check(answer, isOpen: device.login.withLock(\.isOpen))
        return answer
    case .later(let start):
        precondition(device.login.withLock(\.isOpen), "waits for a stranger")
        let got = Locked<DeviceAnswer?>(nil)
        let withdraw = start { answer in got.withLock { $0 = answer } }
        withdraw()
        let answer = got.withLock { $0 }
        if let answer { check(answer, isOpen: true) }
        return answer
    }
}

private func check(_ answer: DeviceAnswer, isOpen: Bool) {
    precondition([200, 400, 401, 403, 404, 405, 500, 503].contains(answer.status), "status \(answer.status)")
    precondition(answer.body.count < 256 << 10, "\(answer.body.count) bytes")
    precondition(isOpen || !answer.isKnown, "a stranger counts as known")
    if answer.type == SOAPAnswer.contentType {
        precondition(!answer.body.isEmpty, "nothing was written")
        // With subscriptions full of messages it may have more elements than a request may have.
        do { _ = try XMLReader.read(answer.body) } catch { precondition(error == .tooLarge, "not well-formed") }
    }
    let counts = Devices.desk.counts
    precondition(counts.subscriptions <= EventDesk.mostSubscriptions, "\(counts.subscriptions) subscriptions")
}

private func raw(_ input: inout FuzzInput, _ device: DeviceEndpoint) {
    var request = DeviceRequest(method: "POST", target: "/onvif/device_service", host: "192.0.2.7")
    request.body = input.rest
    let answer = ask(device, request)
    guard answer?.status == 200, !device.login.withLock(\.isOpen) else { return }
    let soap = try? SOAPRequest(request.body)
    precondition(
        soap.map { $0.body.space == Namespaces.device && DeviceService.open.contains($0.body.name) } ?? false,
        "answers a stranger")
}

private let operations =
    DeviceService.operations.keys.sorted().map { ("device", $0) }
    + [
        "GetProfiles", "GetProfile", "GetStreamUri", "GetSnapshotUri", "CreateProfile", "DeleteProfile",
        "AddVideoSourceConfiguration", "AddVideoEncoderConfiguration", "RemoveVideoEncoderConfiguration",
        "GetVideoEncoderConfiguration", "GetVideoEncoderConfigurationOptions", "GetVideoSourceConfigurationOptions",
        "GetVideoSources", "SetSynchronizationPoint", "GetGuaranteedNumberOfVideoEncoderInstances",
    ].map { ("media", $0) }
    + ["GetProfiles", "GetStreamUri", "GetVideoEncoderConfigurations", "GetVideoEncoderConfigurationOptions"].map {
        ("media2", $0)
    }
    + [
        "CreatePullPointSubscription", "PullMessages", "Renew", "Unsubscribe", "SetSynchronizationPoint",
        "GetEventProperties",
    ].map { ("events", $0) }

private let subscription = Locked("")

private func composed(_ input: inout FuzzInput) {
    for _ in 0..<4 where !input.rest.isEmpty {
        let (service, name) = operations[Int(input.byte()) % operations.count]
        let space =
            ["device": Namespaces.device, "media": Namespaces.media, "media2": Namespaces.media2][service]
            ?? Namespaces.events
        let members = [
            "ProfileToken", "ConfigurationToken", "Name", "Token", "Type", "Timeout", "MessageLimit",
            "TerminationTime", "InitialTerminationTime", "Filter", "IncludeCapability", "Category",
        ]
        var children: [XMLNode] = []
        for _ in 0..<Int(input.byte() % 4) {
            let member = members[Int(input.byte()) % members.count]
            let words = ["main", "sub", "cam", "made-1", "All", "PT1S", "10", input.text(40)]
            let value = words[Int(input.byte()) % words.count]
            children.append(
                member == "Filter"
                    ? XMLNode(member, [], [XMLNode("TopicExpression", value)]) : XMLNode(member, value))
        }
        var request = DeviceRequest(method: "POST", target: "/onvif/x", host: input.text(20))
        if service == "events" { request.target = ServicePath.subscription + subscription.withLock { $0 } }
        request.body =
            XMLNode(
                "s:Envelope", [("xmlns:s", Namespaces.envelope)],
                [XMLNode("s:Body", [], [XMLNode(name, [("xmlns", space)], children)])]
            ).bytes
        let answer = ask(Devices.open, request)
        if name == "CreatePullPointSubscription", answer?.status == 200,
            let root = try? XMLReader.read(answer?.body ?? []),
            let address = root["Body"]?.children.first?["SubscriptionReference"]?["Address"]?.value
        {
            subscription.withLock { $0 = String(address.split(separator: "/").last ?? "") }
        }
        Devices.desk.note(.motion, stage: "moves", isTrue: input.byte() & 1 == 0, wall: Devices.wall, now: 0)
    }
}

private func login(_ input: inout FuzzInput) {
    var check = LoginCheck(users: Credentials(["anna": "secret"]), key: [1])
    let moment = LoginCheck.Moment(wall: Devices.wall, now: 1)
    let token = UsernameToken(
        name: input.text(20), password: input.text(40), isDigest: input.byte() & 1 == 0, nonce: input.text(60),
        created: input.text(30))
    let authorization = input.text(200)
    for verdict in [
        check.judge(token, for: 0, nil, method: "POST", target: "/x", from: .local, at: moment),
        check.judge(nil, for: 0, authorization, method: "POST", target: "/x", from: .local, at: moment),
    ] { if case .granted = verdict { preconditionFailure("a stranger is in") } }
    var request = DeviceRequest(method: input.text(8), target: "/onvif/snapshot/\(input.text(20))", host: "192.0.2.7")
    request.authorization = authorization
    ask(Devices.closed, request)
}

private func datagram(_ bytes: [UInt8]) {
    guard let question = DiscoveryMessage.question(bytes) else { return }
    let facts = Devices.facts
    let sequence = DiscoveryMessage.Sequence(instance: 1, number: 1)
    switch question {
    case .probe(let id, let types, let scopes, let isExact):
        _ = DiscoveryMessage.matches(facts, types: types, scopes: scopes, isExact: isExact)
        let answer = DiscoveryMessage.probeMatches(facts, at: "http://x/", to: id, id: "1", sequence)
        precondition((try? XMLReader.read(answer)) != nil && answer.count < 4096, "\(answer.count) bytes")
    case .resolve(let id, _):
        let answer = DiscoveryMessage.resolveMatches(facts, at: "http://x/", to: id, id: "1", sequence)
        precondition((try? XMLReader.read(answer)) != nil && answer.count < 4096, "\(answer.count) bytes")
    }
}

private func texts(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    if let seconds = XMLTime.seconds(text) {
        precondition(XMLTime.seconds(XMLTime.text(seconds)) == seconds, text)
    }
    if let seconds = XMLTime.duration(text) { precondition(seconds >= 0 && seconds <= 864_000, text) }
    precondition(URLText.unescaped(URLText.escaped(text)) == text, text)
    _ = TopicFilter(text).topics(of: .motion)
    _ = HostName(text)
    let node = XMLNode("a", text, [("b", text)])
    if bytes.count < 8000 { precondition((try? XMLReader.read(node.bytes)) != nil, "cannot be read again") }
}
