// SPDX-License-Identifier: Apache-2.0

import FrameSupport
import ServerAccess
import Testing

@testable import FrameCore
@testable import ONVIF

@Suite struct DeviceEndpointTests {
    private static let device = "xmlns='http://www.onvif.org/ver10/device/wsdl'"
    private static let media = "xmlns='http://www.onvif.org/ver10/media/wsdl'"
    private static let media2 = "xmlns='http://www.onvif.org/ver20/media/wsdl'"
    private static let events = "xmlns='http://www.onvif.org/ver10/events/wsdl'"

    @Test func tellsTheTimeBeforeALogin() throws {
        let answer = try FakeDevice().send(FakeDevice.envelope("<GetSystemDateAndTime \(Self.device)/>"))
        #expect(answer.status == 200 && !answer.isKnown)
        let moment = answer.node?.find("UTCDateTime")
        #expect(moment?.find("Hour")?.value == "12")
        #expect(moment?.find("Year")?.value == "2026")
    }

    @Test(arguments: [
        "<GetProfiles xmlns='http://www.onvif.org/ver10/media/wsdl'/>",
        "<GetDeviceInformation xmlns='http://www.onvif.org/ver10/device/wsdl'/>",
        "<GetStreamUri xmlns='http://www.onvif.org/ver10/media/wsdl'/>",
        "<CreatePullPointSubscription xmlns='http://www.onvif.org/ver10/events/wsdl'/>",
        "<GetProfiles xmlns='http://www.onvif.org/ver20/media/wsdl'/>",
        "<GetSystemDateAndTime xmlns='http://www.onvif.org/ver10/media/wsdl'/>", "<Nothing/>",
    ]) func asksForALoginFirst(body: String) throws {
        let answer = try FakeDevice().send(FakeDevice.envelope(body))
        #expect(answer.status == 401 && answer.fault == "ter:NotAuthorized" && !answer.isKnown)
        #expect(answer.fields["WWW-Authenticate"]?.hasPrefix("Digest realm=\"framehost\", qop=\"auth\"") == true)
    }

    @Test func profilesHaveTheTrueSizeRateAndBitrate() throws {
        let device = try FakeDevice()
        let node = try #require(try device.ask("<GetProfiles \(Self.media)/>").node)
        let profiles = node.all("Profiles")
        #expect(profiles.map { $0.attribute("token") } == ["main", "sub"])
        let encoder = try #require(profiles[0]["VideoEncoderConfiguration"])
        #expect(encoder["Resolution"]?["Width"]?.value == "1280")
        #expect(encoder["Resolution"]?["Height"]?.value == "720")
        #expect(encoder["RateControl"]?["FrameRateLimit"]?.value == "25")
        #expect(encoder["RateControl"]?["BitrateLimit"]?.value == "2500")
        #expect(encoder["H264"]?["GovLength"]?.value == "100")
        #expect(encoder["H264"]?["H264Profile"]?.value == "High")
        #expect(profiles[1]["VideoEncoderConfiguration"]?["RateControl"]?["BitrateLimit"]?.value == "4000")
        #expect(profiles.allSatisfy { $0["VideoSourceConfiguration"]?["SourceToken"]?.value == "cam" })
    }

    @Test func addressesAreThoseByWhichTheClientCame() throws {
        let device = try FakeDevice()
        let body = "<GetStreamUri \(Self.media)><ProfileToken>main</ProfileToken></GetStreamUri>"
        #expect(try device.ask(body).node?.find("Uri")?.value == "rtsp://192.0.2.7:9554/main")
        let snapshot = "<GetSnapshotUri \(Self.media)><ProfileToken>sub</ProfileToken></GetSnapshotUri>"
        #expect(try device.ask(snapshot).node?.find("Uri")?.value == "http://192.0.2.7:8000/onvif/snapshot/sub")
        let open = FakeDevice.envelope("<GetServices \(Self.device)/>")
        for (host, base) in [
            ("door.local", "http://door.local:80"), ("[2001:db8::7]:8000", "http://[2001:db8::7]:8000"),
            ("\"><evil", "http://127.0.0.1:8000"), (nil, "http://127.0.0.1:8000"),
        ] {
            let answer = try device.send(open, host: host)
            #expect(answer.node?.find("XAddr")?.value == "\(base)/onvif/device_service", "\(host ?? "")")
        }
    }

    @Test func aSecondServiceHasWordsForH265() throws {
        let device = try FakeDevice()
        device.run.state.withLock { $0.formats["enc"] = FakeChain.format(1280, 720, .h265) }
        let facts = try device.run.facts().facts
        device.endpoint.facts.withLock { $0 = facts }
        let first = try #require(try device.ask("<GetProfiles \(Self.media)/>").node)
        #expect(first.all("Profiles")[0]["VideoEncoderConfiguration"] == nil)
        let body = "<GetProfiles \(Self.media2)><Type>All</Type></GetProfiles>"
        let second = try #require(try device.ask(body).node)
        #expect(second.all("Profiles")[0].find("VideoEncoder")?["Encoding"]?.value == "H265")
        // The first service has no such configuration, nor options of it.
        func options(_ token: String) throws -> DeviceAnswer {
            let name = "GetVideoEncoderConfigurationOptions"
            return try device.ask("<\(name) \(Self.media)>\(token)</\(name)>")
        }
        for name in ["ConfigurationToken", "ProfileToken"] {
            #expect(try options("<\(name)>main</\(name)>").fault == "ter:NoConfig")
            #expect(try options("<\(name)>sub</\(name)>").node?.find("Width")?.value == "640")
        }
        #expect(try options("").node?.find("Width")?.value == "640")
        let uri =
            "<GetStreamUri \(Self.media2)><Protocol>RTSP</Protocol><ProfileToken>main</ProfileToken></GetStreamUri>"
        #expect(try device.ask(uri).node?["Uri"]?.value == "rtsp://192.0.2.7:9554/main")
    }

    @Test func synologyMakesAProfileAndDeletesIt() throws {
        let device = try FakeDevice()
        let made = try device.ask("<CreateProfile \(Self.media)><Name>SynoTestProfile</Name></CreateProfile>")
        let token = try #require(made.node?["Profile"]?.attribute("token"))
        func change(_ operation: String, _ more: String = "") throws -> DeviceAnswer {
            try device.ask("<\(operation) \(Self.media)><ProfileToken>\(token)</ProfileToken>\(more)</\(operation)>")
        }
        #expect(try change("GetStreamUri").fault == "ter:IncompleteConfiguration")
        let source = "<ConfigurationToken>cam</ConfigurationToken>"
        let encoder = "<ConfigurationToken>sub</ConfigurationToken>"
        #expect(try change("AddVideoSourceConfiguration", source).status == 200)
        #expect(try change("AddVideoEncoderConfiguration", encoder).status == 200)
        #expect(try change("AddVideoEncoderConfiguration", source).fault == "ter:NoConfig")
        #expect(try change("GetStreamUri").node?.find("Uri")?.value == "rtsp://192.0.2.7:8554/sub")
        #expect(try device.ask("<GetProfiles \(Self.media)/>").node?.all("Profiles").count == 3)
        #expect(try change("DeleteProfile").status == 200)
        #expect(try change("DeleteProfile").fault == "ter:NoProfile")
        for number in 0..<MadeProfiles.most {
            #expect(try device.ask("<CreateProfile \(Self.media)><Name>\(number)</Name></CreateProfile>").status == 200)
        }
        // One more takes the place of the one that was used longest ago.
        #expect(try device.ask("<CreateProfile \(Self.media)><Name>more</Name></CreateProfile>").status == 200)
        let names = try #require(try device.ask("<GetProfiles \(Self.media)/>").node).all("Profiles").compactMap {
            $0["Name"]?.value
        }
        #expect(names == ["main", "sub"] + (1..<MadeProfiles.most).map { "\($0)" } + ["more"])
        let fixed = "<DeleteProfile \(Self.media)><ProfileToken>main</ProfileToken></DeleteProfile>"
        #expect(try device.ask(fixed).fault == "ter:DeletionOfFixedProfile")
    }

    @Test(arguments: ["SystemReboot", "SetSystemDateAndTime", "CreateUsers", "SetHostname", "Made<Up"])
    func refusesWhatWouldChangeTheMachine(operation: String) throws {
        let answer = try FakeDevice().ask("<\(operation) \(Self.device)/>")
        #expect(answer.fault == (operation.contains("<") ? "ter:WellFormed" : "ter:ActionNotSupported"))
        #expect(answer.status == (operation.contains("<") ? 400 : 500))
    }

    @Test func everyOperationAnswersWellFormedXML() throws {
        let device = try FakeDevice()
        for operation in DeviceService.operations.keys.sorted() {
            let answer = try device.ask("<\(operation) \(Self.device)/>")
            #expect(answer.node?.name == "\(operation)Response", "\(operation)")
        }
        let token = "<ConfigurationToken>main</ConfigurationToken><ProfileToken>main</ProfileToken>"
        for operation in [
            "GetServiceCapabilities", "GetProfiles", "GetProfile", "GetVideoSources", "GetVideoSourceConfigurations",
            "GetVideoEncoderConfigurations", "GetVideoEncoderConfiguration", "GetVideoEncoderConfigurationOptions",
            "GetCompatibleVideoEncoderConfigurations", "GetGuaranteedNumberOfVideoEncoderInstances",
            "SetSynchronizationPoint", "GetAudioEncoderConfigurations",
        ] {
            let answer = try device.ask("<\(operation) \(Self.media)>\(token)</\(operation)>")
            #expect(answer.node?.name == "\(operation)Response", "\(operation)")
        }
        #expect(device.run.state.withLock { $0.keyframes } == ["enc"])
        let scopes = try #require(try device.ask("<GetScopes \(Self.device)/>").node)
        #expect(scopes.all("ScopeItem").map(\.value).contains("onvif://www.onvif.org/name/front%20door"))
        #expect(scopes.all("ScopeItem").map(\.value).contains("onvif://www.onvif.org/location/Porch%20%3C1%3E"))
    }

    @Test func pagesOfBrowsersGetNothing() throws {
        let device = try FakeDevice(users: nil)
        var request = DeviceRequest(method: "GET", target: "/onvif/snapshot/main", host: "192.0.2.7:8000")
        request.isFromPage = true
        #expect(try device.answer(request).status == 403)
        // A name that a stranger's server gives this machine.
        request.isFromPage = false
        request.host = "evil.example:8000"
        #expect(try device.answer(request).status == 403)
    }

    /// The addresses that may play see the pictures, and no others.
    @Test func takesTheAddressesOfTheSinksAlone() throws {
        let device = try FakeDevice(users: nil)
        device.endpoint.facts.withLock { $0.audience.allow = ["192.0.2.0/24", "fd00::7"] }
        for (client, status) in [
            (Client(v4: 0xc000_0207), 404), (Client(v4: 0xc000_0307), 403),
            (Client(network: .local, address: IPAddress("fd00::7")!), 404),
            (Client(network: .local, address: IPAddress("fd00::8")!), 403),
        ] {
            for target in ["/onvif/snapshot/nothing", "/nothing"] {
                var request = DeviceRequest(method: "GET", target: target, host: "192.0.2.7:8000")
                request.client = client
                #expect(try device.answer(request).status == status)
            }
        }
    }

    @Test func addressesOfStreamsAreThoseOfTheirSinks() throws {
        let run = FakeChain()
        func set(_ options: String) {
            run.state.withLock {
                $0.chain = FakeChain.node(
                    FakeChain.chainText.replacingOccurrences(
                        of: #""id":"sub","path":"/sub""#, with: #""id":"sub",\#(options)"#))
            }
        }
        set(#""path":"/a b/tür","address":"192.0.2.9""#)
        let facts = try run.facts().facts
        let call = Call(
            request: try SOAPRequest(Array(FakeDevice.envelope("<GetProfiles/>").utf8)), facts: facts,
            base: "http://192.0.2.7:8000", host: "192.0.2.7", wall: 0, isKnown: true)
        let sub = try #require(facts.stream("sub"))
        #expect(MediaNodes.streamAddress(call, sub) == "rtsp://192.0.2.9:8554/a%20b/t%C3%BCr")
        let main = try #require(facts.stream("main"))
        #expect(MediaNodes.streamAddress(call, main) == "rtsp://192.0.2.7:9554/main")
        // A recorder cannot reach it.
        set(#""path":"/sub","address":"127.0.0.1""#)
        let (fewer, left) = try run.facts()
        #expect(fewer.stream("sub") == nil && left == [FactsReader.LeftOut(stage: "sub", why: .loopback)])
    }

    @Test func withoutUsersEverybodyIsAStranger() throws {
        let device = try FakeDevice(users: nil)
        let answer = try device.send(
            FakeDevice.envelope("<GetProfiles xmlns='http://www.onvif.org/ver10/media/wsdl'/>"))
        #expect(answer.status == 200 && !answer.isKnown)
    }

    @Test(arguments: [Namespaces.device, Namespaces.media, Namespaces.media2, Namespaces.events])
    func saysWhatItCanDoBeforeALogin(space: String) throws {
        let answer = try FakeDevice().send(FakeDevice.envelope("<GetServiceCapabilities xmlns='\(space)'/>"))
        #expect(answer.status == 200)
    }

    @Test func tellsNoStrangerTheMachinesName() throws {
        let device = try FakeDevice()
        let uuid = device.endpoint.facts.withLock { $0.identity.uuid }
        let answer = try device.send(FakeDevice.envelope("<GetHostname \(Self.device)/>"))
        #expect(answer.node?.find("Name")?.value == "framehost-\(uuid.prefix(8))")
    }

    @Test func saysWhetherDiscoveryFindsIt() throws {
        let device = try FakeDevice()
        for (isDiscoverable, mode) in [(false, "NonDiscoverable"), (true, "Discoverable")] {
            device.endpoint.facts.withLock { $0.isDiscoverable = isDiscoverable }
            let answer = try device.ask("<GetDiscoveryMode \(Self.device)/>")
            #expect(answer.node?.find("DiscoveryMode")?.value == mode)
        }
    }

    // MARK: Snapshots

    private func withPictures<Result>(_ device: FakeDevice, _ body: () throws -> Result) rethrows -> Result {
        let ended = WaitableFlag()
        let snapshots = device.snapshots
        try? ServiceThread.start(name: "pictures") {
            snapshots.run()
            ended.raise()
        }
        defer {
            snapshots.close()
            ended.wait(milliseconds: 60_000)
        }
        return try body()
    }

    private func picture(_ device: FakeDevice, _ stream: String) throws -> DeviceAnswer {
        try device.answer(DeviceRequest(method: "GET", target: "/onvif/snapshot/\(stream)", host: "192.0.2.7:8000"))
    }

    @Test func showsWhatTheEncoderTakes() throws {
        let device = try FakeDevice(users: nil)
        try withPictures(device) {
            let answer = try picture(device, "main")
            #expect(answer.status == 200 && answer.type == "image/jpeg" && answer.text == "picture")
            #expect(try picture(device, "sub").status == 200)
            #expect(device.run.state.withLock { Set($0.asked) } == ["hide", "half"])
            #expect(try picture(device, "nothing").status == 404)
        }
    }

    @Test func neverShowsAnOriginal() throws {
        let device = try FakeDevice(users: nil)
        try withPictures(device) {
            // While the picture is on its way.
            device.run.state.withLock { $0.turnsOriginal = "hide" }
            let first = try picture(device, "main")
            #expect(first.status == 404)
            #expect(try picture(device, "main").status == 404)
            let asked = device.run.state.withLock { $0.asked.count }
            #expect(try picture(device, "main").status == 404)
            #expect(device.run.state.withLock { $0.asked.count } == asked)
        }
        let facts = try device.run.facts().facts
        #expect(facts.stream("main")?.pictureStage == nil)
    }

    @Test func snapshotsNeedALogin() throws {
        let device = try FakeDevice()
        let answer = try picture(device, "main")
        #expect(answer.status == 401 && answer.body.isEmpty)
        #expect(device.run.state.withLock { $0.asked.isEmpty })
    }

    // MARK: Events

    @Test func aSubscriptionTellsStatesAndChanges() throws {
        let device = try FakeDevice()
        let created = try device.ask("<CreatePullPointSubscription \(Self.events)/>", path: ServicePath.events)
        let address = try #require(created.node?.find("Address")?.value)
        let path = try #require(address.range(of: "/onvif/")).lowerBound
        func pull() throws -> XMLElement {
            let body =
                "<PullMessages \(Self.events)><Timeout>PT20S</Timeout><MessageLimit>10</MessageLimit></PullMessages>"
            return try #require(try device.ask(body, path: String(address[path...])).node)
        }
        func words(_ node: XMLElement) -> [String] {
            node.all("NotificationMessage").map { message in
                let items = message.all("SimpleItem").filter { ["IsMotion", "State"].contains($0.attribute("Name")) }
                let kind = message.find("Message")?["Message"]?.attribute("PropertyOperation") ?? ""
                return "\(message["Topic"]?.localValue ?? "") \(kind) \(items.first?.attribute("Value") ?? "")"
            }
        }
        #expect(
            words(try pull()) == [
                "RuleEngine/MyRuleDetector/FaceDetect".replacing("RuleEngine", with: "RuleEngine")
                    + " Initialized false",
                "VideoSource/MotionAlarm Initialized false",
                "RuleEngine/CellMotionDetector/Motion Initialized false",
            ])
        device.desk.note(.motion, stage: "moves", isTrue: true, wall: FakeDevice.time, now: MonotonicTime.now())
        #expect(
            words(try pull()) == [
                "VideoSource/MotionAlarm Changed true", "RuleEngine/CellMotionDetector/Motion Changed true",
            ])
        let properties = try #require(try device.ask("<GetEventProperties \(Self.events)/>").node)
        #expect(properties.find("MotionAlarm") != nil && properties.find("FaceDetect") != nil)
        let gone = "<Unsubscribe xmlns='http://docs.oasis-open.org/wsn/b-2'/>"
        #expect(try device.ask(gone, path: String(address[path...])).status == 200)
        #expect(try device.ask(gone, path: String(address[path...])).status == 400)
        let notify = "<Subscribe xmlns='http://docs.oasis-open.org/wsn/b-2'/>"
        #expect(try device.ask(notify).fault == "ter:ActionNotSupported")
    }
}
