// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink

@Suite struct RTSPHeaderTests {
    // MARK: URL

    static let urls: [(text: String, url: RTSPURL)] = [
        ("rtsp://127.0.0.1:8554/live", RTSPURL(host: "127.0.0.1", port: 8554, path: "/live")),
        ("rtsps://cam.local/a/b", RTSPURL(isSecure: true, host: "cam.local", path: "/a/b")),
        ("rtsp://[fe80::1]:554/live", RTSPURL(host: "fe80::1", port: 554, path: "/live")),
        ("rtsp://h/live/trackID=0", RTSPURL(host: "h", path: "/live", track: 0)),
        ("rtsp://h/", RTSPURL(host: "h", path: "/")),
        ("rtsp://h/a%20b%25", RTSPURL(host: "h", path: "/a b%")),
        ("rtsp://h/live?token=1%2F2", RTSPURL(host: "h", path: "/live", query: "token=1%2F2")),
    ]

    @Test(arguments: urls.indices) func readsAndWritesURLs(index: Int) {
        #expect(RTSPURL(Self.urls[index].text) == Self.urls[index].url)
        #expect(Self.urls[index].url.text == Self.urls[index].text)
    }

    /// What clients make of `a=control:trackID=0`.
    @Test(
        arguments: [
            ("rtsp://h/live?a=1/trackID=0", "/live", "a=1", 0), ("rtsp://h/live?a=1/trackID=0/", "/live", "a=1", 0),
            ("rtsp://h/live?a=1/trackID=1/trackID=0", "/live", "a=1", 0),
            ("rtsp://h/live?\u{301}/trackID=0", "/live", "%CC%81", 0),
            ("rtsp://h/live/trackID=3/", "/live", nil, 3), ("rtsp://h/live/", "/live", nil, nil),
            ("RTSP://u:p@h/live//", "/live", nil, nil),
            ("rtsp://h", "/", nil, nil), ("/live", "/live", nil, nil), ("rtsp://h/live/trackid=0?x", "/live", "x", 0),
            ("rtsp://h/live?/trackID=1", "/live", nil, 1),
        ] as [(String, String, String?, Int?)]) func findsPathQueryAndTrack(
            text: String, path: String, query: String?, track: Int?
        ) throws
    {
        let url = try #require(RTSPURL(text))
        #expect(url.path == path)
        #expect(url.query == query)
        #expect(url.track == track)
    }

    @Test(arguments: [
        "http://h/live", "rtsp://", "rtsp:///live", "live", "", "*", "rtsp://h:0/", "rtsp://h:65536/", "rtsp://h:x/",
        "rtsp://h/%",
        "rtsp://h/%2",
        "rtsp://h/%gg", "rtsp://h/%00", "rtsp://[::1/live", "rtsp://[::1]x/", "rtsp://[h]/", "rtsp://[[::1]/",
    ]) func refusesWhatIsNoURL(text: String) { #expect(RTSPURL(text) == nil) }

    // MARK: Transport

    static func spec(_ lower: TransportSpec.Lower, _ fill: (inout TransportSpec) -> Void) -> TransportSpec {
        var spec = TransportSpec(lower)
        fill(&spec)
        return spec
    }

    static let transports: [(text: String, spec: TransportSpec)] = [
        ("RTP/AVP;unicast;client_port=4588-4589", spec(.udp) { $0.clientPort = .init(4588, 4589) }),
        ("RTP/AVP/TCP;unicast;interleaved=0-1", spec(.tcp) { $0.interleaved = .init(0, 1) }),
        (
            "RTP/AVP;unicast;client_port=1-2;server_port=8000-8001;ssrc=0000ABCD",
            spec(.udp) {
                $0.clientPort = .init(1, 2); $0.serverPort = .init(8000, 8001); $0.ssrc = 0xabcd
            }
        ),
        (
            "RTP/AVP;multicast;destination=239.0.0.1;mode=PLAY",
            spec(.udp) {
                $0.isMulticast = true; $0.destination = "239.0.0.1"; $0.mode = "PLAY"
            }
        ),
        ("RTP/AVP;unicast;source=10.0.0.1", spec(.udp) { $0.source = "10.0.0.1" }),
    ]

    @Test(arguments: transports.indices) func readsAndWritesTransports(index: Int) {
        #expect(TransportSpec(Self.transports[index].text) == Self.transports[index].spec)
        #expect(Self.transports[index].spec.text == Self.transports[index].text)
    }

    @Test func readsListsAndWhatClientsWrite() throws {
        // GStreamer offers several; FFmpeg writes UDP and quotes the mode; some name one port.
        let list = TransportHeader.parse(
            "RTP/SAVP;unicast, RTP/AVP/UDP;unicast;client_port=5000;mode=\"play\" , rtp/avp/tcp;INTERLEAVED=2-3;x=y")
        try #require(list.count == 2)
        #expect(list[0].clientPort == .init(5000, 5001))
        #expect(list[0].mode == "PLAY")
        #expect(list[1].interleaved == .init(2, 3))
    }

    @Test(arguments: [
        "", "RAW/RAW/UDP", "RTP/AVP;client_port=0-1", "RTP/AVP;client_port=65535", "RTP/AVP;client_port=70000-70001",
        "RTP/AVP;client_port=a-b",
        "RTP/AVP/TCP;interleaved=255", "RTP/AVP/TCP;interleaved=255-256", "RTP/AVP/TCP;interleaved=1-2-3",
        "RTP/AVP;client_port=7-7",
    ]) func refusesWrongTransports(text: String) { #expect(TransportSpec(text) == nil) }

    // MARK: Range, Session, RTP-Info

    @Test(
        arguments: [
            ("npt=now-", .now), ("npt=0.000-", .seconds(from: 0, to: nil)),
            ("npt=0-;time=19970123T143720Z", .seconds(from: 0, to: nil)),
            ("npt=-5", .seconds(from: 0, to: 5)), ("npt=0:01:12.5-90", .seconds(from: 72.5, to: 90)),
            ("clock=19961108T142300Z-", .absolute("19961108T142300Z-")), ("smpte-25=10:07:00-", .absolute("10:07:00-")),
            ("NPT=now-", .now),
            ("npt=x-", nil), ("npt", nil), ("npt=5", nil), ("bytes=0-", nil), ("npt=0-1e999", nil),
        ] as [(String, PlayRange?)]) func readsRanges(text: String, range: PlayRange?)
    { #expect(PlayRange(text) == range) }

    @Test func readsAndWritesSessionAndRTPInfo() {
        for (text, header) in [
            ("12345678", SessionHeader(id: "12345678")), ("ab;timeout=60", SessionHeader(id: "ab", timeoutSeconds: 60)),
        ] {
            #expect(SessionHeader(text) == header)
            #expect(header.text == text)
        }
        #expect(SessionHeader(" ab ; timeout=99999999 ") == SessionHeader(id: "ab"))
        #expect(SessionHeader(";timeout=60") == nil)
        #expect(SessionHeader(String(repeating: "a", count: 200)) == nil)
        for (text, info) in [
            (
                "url=rtsp://h/live/trackID=0;seq=17;rtptime=4294967295",
                RTPInfo(url: "rtsp://h/live/trackID=0", sequenceNumber: 17, rtpTime: .max)
            ),
            ("url=rtsp://h/live", RTPInfo(url: "rtsp://h/live")),
        ] {
            #expect(RTPInfo(text) == info)
            #expect(info.text == text)
        }
        #expect(RTPInfo("seq=1") == nil)
    }

    // MARK: SDP

    static let sps: [UInt8] = [0x67, 0x64, 0x00, 0x1f, 0xac, 0xd9, 0x40]
    static let pps: [UInt8] = [0x68, 0xeb, 0xe3, 0xcb]

    @Test func writesTheDescriptionThatEveryPlayerReads() {
        let description = SessionDescription(
            sessionID: 42, address: "192.168.1.5", name: "live", sps: Self.sps, pps: Self.pps, bitrateKbps: 2500,
            frameRate: "30")
        #expect(
            description.text
                == [
                    "v=0", "o=- 42 1 IN IP4 192.168.1.5", "s=live", "c=IN IP4 0.0.0.0", "t=0 0", "a=tool:framehost",
                    "a=control:*",
                    "a=range:npt=now-",
                    "m=video 0 RTP/AVP 96", "b=AS:2500", "a=rtpmap:96 H264/90000",
                    "a=fmtp:96 packetization-mode=1; profile-level-id=64001F; sprop-parameter-sets=Z2QAH6zZQA==,aOvjyw==",
                    "a=framerate:30",
                    "a=control:trackID=0", "",
                ].joined(separator: "\r\n"))
        #expect(SessionDescription(parsing: description.text) == description)
    }

    @Test func describesWithIPv6AndWithoutRate() {
        let description = SessionDescription(
            sessionID: 1, address: "fd00::2", name: "a b", sps: Self.sps, pps: Self.pps)
        #expect(description.text.contains("o=- 1 1 IN IP6 fd00::2\r\n"))
        #expect(description.text.contains("c=IN IP6 ::\r\n"))
        #expect(!description.text.contains("b=AS"))
        #expect(SessionDescription(parsing: description.text) == description)
    }

    @Test(arguments: ["", "v=0", "v=0\r\nm=audio 0 RTP/AVP 0\r\n", "m=video 0 RTP/AVP 96\r\n", "nonsense\r\n"])
    func readsNoOtherDescription(text: String) { #expect(SessionDescription(parsing: text) == nil) }

    @Test func writesResponses() {
        var response = RTSPResponse(.ok, headers: HeaderFields([("CSeq", "1")]), body: [65])
        #expect(
            String(decoding: response.bytes, as: UTF8.self)
                == "RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 1\r\n\r\nA")
        response = RTSPResponse(.sessionNotFound)
        #expect(String(decoding: response.bytes, as: UTF8.self) == "RTSP/1.0 454 Session Not Found\r\n\r\n")
        #expect(Set(RTSPStatus.allCases.map(\.reason)).count == RTSPStatus.allCases.count)
    }
}
