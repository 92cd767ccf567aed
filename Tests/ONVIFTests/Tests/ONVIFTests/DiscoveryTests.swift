// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore
@testable import ONVIF

@Suite struct DiscoveryTests {
    private func message(_ body: String) -> [UInt8] {
        Array(
            """
            <e:Envelope xmlns:e="http://www.w3.org/2003/05/soap-envelope" xmlns:w="http://schemas.xmlsoap.org/ws/2004/08/addressing" \
            xmlns:d="http://schemas.xmlsoap.org/ws/2005/04/discovery" xmlns:n="http://www.onvif.org/ver10/network/wsdl" \
            xmlns:tds="http://www.onvif.org/ver10/device/wsdl" xmlns:wsdp="http://schemas.xmlsoap.org/ws/2006/02/devprof">\
            <e:Header><w:MessageID>uuid:1</w:MessageID></e:Header><e:Body>\(body)</e:Body></e:Envelope>
            """.utf8)
    }

    private func isFound(_ body: String) throws -> Bool {
        guard case .probe(let id, let types, let scopes, let isExact) = DiscoveryMessage.question(message(body)) else {
            return false
        }
        #expect(id == "uuid:1")
        return DiscoveryMessage.matches(
            try FakeChain().facts().facts, types: types, scopes: scopes, isExact: isExact)
    }

    @Test func isFoundByWhatItIs() throws {
        for body in [
            "<d:Probe/>", "<d:Probe><d:Types>n:NetworkVideoTransmitter</d:Types></d:Probe>",
            "<d:Probe><d:Types>tds:Device</d:Types><d:Scopes/></d:Probe>",
            "<d:Probe><d:Types> n:NetworkVideoTransmitter\n tds:Device </d:Types></d:Probe>",
            "<d:Probe xmlns:own='http://www.onvif.org/ver10/device/wsdl'><d:Types>own:Device</d:Types></d:Probe>",
            "<d:Probe><d:Types xmlns:wsdp='http://www.onvif.org/ver10/device/wsdl'>wsdp:Device</d:Types></d:Probe>",
            // Without a namespace, as some clients send it.
            "<d:Probe><d:Types>NetworkVideoTransmitter</d:Types></d:Probe>",
            "<d:Probe><d:Types>x:NetworkVideoTransmitter</d:Types></d:Probe>",
            "<d:Probe><d:Scopes>onvif://www.onvif.org/Profile onvif://www.onvif.org/type</d:Scopes></d:Probe>",
            "<d:Probe><d:Scopes>onvif://www.onvif.org/name/front%20door</d:Scopes></d:Probe>",
        ] { #expect(try isFound(body), "\(body)") }
        for body in [
            "<d:Probe><d:Types>n:Printer</d:Types></d:Probe>",
            // Windows looks for its own devices.
            "<d:Probe><d:Types>wsdp:Device</d:Types></d:Probe>",
            "<d:Probe><d:Types>n:NetworkVideoTransmitter wsdp:Device</d:Types></d:Probe>",
            "<d:Probe><d:Types>n:Device</d:Types></d:Probe>", "<d:Probe><d:Types>Device</d:Types></d:Probe>",
            "<d:Probe><d:Types>x:Device</d:Types></d:Probe>",
            "<d:Probe><d:Types>wsdp:NetworkVideoTransmitter</d:Types></d:Probe>",
            "<d:Probe><d:Types xmlns:tds='http://schemas.xmlsoap.org/ws/2006/02/devprof'>tds:Device</d:Types></d:Probe>",
            "<d:Probe><d:Scopes>onvif://www.onvif.org/nam</d:Scopes></d:Probe>",
            "<d:Probe><d:Scopes>onvif://www.onvif.org/name/back</d:Scopes></d:Probe>",
            "<d:Probe><d:Scopes MatchBy='http://schemas.xmlsoap.org/ws/2005/04/discovery/ldap'>x</d:Scopes></d:Probe>",
            "<d:Hello/>", "<Probe/>", "<d:ProbeMatches/>",
        ] { #expect(try !isFound(body), "\(body)") }
        #expect(DiscoveryMessage.question([]) == nil)
        #expect(DiscoveryMessage.question([UInt8](repeating: 60, count: 9000)) == nil)
    }

    @Test func answersSayWhereItIs() throws {
        let facts = try FakeChain().facts().facts
        let bytes = DiscoveryMessage.probeMatches(
            facts, at: "http://192.0.2.7:8000/onvif/device_service", to: "uuid:1", id: "2",
            .init(instance: 7, number: 1))
        let root = try XMLReader.read(bytes)
        #expect(root.find("RelatesTo")?.value == "uuid:1")
        #expect(root.find("XAddrs")?.value == "http://192.0.2.7:8000/onvif/device_service")
        #expect(root.find("Address")?.value == "urn:uuid:\(facts.identity.uuid)")
        #expect(root.find("Types")?.value == "dn:NetworkVideoTransmitter tds:Device")
        // One datagram on every network.
        #expect(bytes.count < 1472)
        let resolve =
            "<d:Resolve><w:EndpointReference><w:Address>urn:uuid:1</w:Address></w:EndpointReference></d:Resolve>"
        #expect(DiscoveryMessage.question(message(resolve)) == .resolve(messageID: "uuid:1", address: "urn:uuid:1"))
    }

    /// In any mix of questions and messages of its own: at most 50 answers in a second, every Hello and Bye, and each
    /// message has the next number.
    @Test(arguments: 0..<50) func aFloodSwallowsNoBye(round: Int) {
        var counter = MessageCounter(instance: 7)
        var (now, number) = (Int64.random(in: 0..<1_000_000_000_000), UInt32(0))
        var answers: [Int64: Int] = [:]
        for _ in 0..<2000 {
            now += Int64.random(in: 0..<10_000_000)
            let isOwn = Int.random(in: 0..<100) == 0
            guard let sequence = isOwn ? counter.announcement() : counter.answer(now: now) else {
                #expect(answers[now / 1_000_000_000] == MessageCounter.mostAnswers)
                continue
            }
            number += 1
            #expect(sequence.instance == 7 && sequence.number == number)
            if !isOwn { answers[now / 1_000_000_000, default: 0] += 1 }
        }
        #expect(answers.values.allSatisfy { $0 <= MessageCounter.mostAnswers })
        #expect(answers.values.contains(MessageCounter.mostAnswers))
    }

    @Test func devicesOfAMachineDiffer() {
        let one = DeviceIdentity(machine: "m", chain: "a", port: 8000)
        #expect(one == DeviceIdentity(machine: "m", chain: "a", port: 8000))
        for other in [
            DeviceIdentity(machine: "m", chain: "a", port: 8001), DeviceIdentity(machine: "m", chain: "b", port: 8000),
            DeviceIdentity(machine: "n", chain: "a", port: 8000),
            DeviceIdentity(machine: "m", chain: "a", port: 8000, address: "192.0.2.7"),
        ] { #expect(one.uuid != other.uuid && one.hardwareAddress != other.hardwareAddress) }
        #expect(one.uuid.split(separator: "-").map(\.count) == [8, 4, 4, 4, 12])
        #expect(one.hardwareAddress.hasPrefix("02:") && one.hardwareAddress.utf8.count == 17)
    }
}

@Suite struct FactsReaderTests {
    @Test func readsStreamsFromTheChain() throws {
        let run = FakeChain()
        let (facts, left) = try run.facts()
        #expect(left.isEmpty)
        #expect(facts.streams.map(\.id) == ["main", "sub"])
        #expect(facts.streams.map(\.pictureStage) == ["hide", "half"])
        #expect(facts.streams.map(\.port) == [9554, 8554])
        #expect(facts.motionStages == ["moves": "cam"] && facts.faceStages == ["who": "cam"])
        #expect(facts.sources.map(\.id) == ["main"])
    }

    @Test func leavesOutStreamsOfOtherUsers() throws {
        let run = FakeChain()
        #expect(try run.facts(users: "others").left.map(\.why) == [.otherUsers, .otherUsers])
        #expect(try run.facts(users: "others").facts.streams.isEmpty)
        #expect(try run.facts(users: nil).facts.streams.isEmpty)
    }

    @Test func anOriginalStreamHasNoSnapshots() throws {
        let run = FakeChain()
        run.state.withLock { $0.originals = ["cam", "hide"] }
        #expect(try run.facts().facts.streams.map(\.pictureStage) == [nil, "half"])
    }

    @Test func aStreamThatIsPassedThroughHasNoSnapshots() throws {
        let run = FakeChain()
        run.state.withLock { $0.formats["hide"] = FakeChain.format(1280, 720) }
        #expect(try run.facts().facts.stream("main")?.pictureStage == "who")
        run.state.withLock { state in
            state.plan = FakeChain.node(
                #"{"stages":[{"id":"cam","use":"v4l2-source","kind":"source"},{"id":"main","use":"rtsp-sink","kind":"sink"}],"links":[{"from":"cam","to":"main"}]}"#
            )
            state.formats["cam"] = FakeChain.format(1280, 720)
        }
        let stream = try #require(try run.facts().facts.stream("main"))
        #expect(stream.pictureStage == nil && stream.source == "cam")
    }
}
