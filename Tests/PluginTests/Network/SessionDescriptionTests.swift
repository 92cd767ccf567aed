// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FileSource

@Suite struct SessionDescriptionTests {
    private static func lines(_ sdp: String, takesSound: Bool = false) -> [String] {
        SessionDescription(sdp, takesSound: takesSound).tracks.flatMap(\.lines)
    }

    private static let video = "m=video 0 RTP/AVP 96"

    @Test(arguments: [
        (
            "m=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=fmtp:96 a=1",
            ["a=rtpmap:96 H264/90000", "a=fmtp:96 a=1"]
        ),
        ("m=video 0 RTP/AVP 96\na=rtpmap:96 H264/90000/1", ["a=rtpmap:96 H264/90000"]),
        ("m=video 0 RTP/AVP 97 96\ra=rtpmap:96 H265/90000\ra=fmtp:97 x=1", ["a=rtpmap:96 H265/90000"]),
        (
            "m=video 0 RTP/AVP 96\na=fmtp:96 packetization-mode=1",
            ["a=rtpmap:96 H264/90000", "a=fmtp:96 packetization-mode=1"]
        ),
        ("m=video 0 RTP/AVP 96", ["a=rtpmap:96 H264/90000"]),
        ("m=video 0 RTP/AVP 96\na=fmtp:96 sprop-vps=x", ["a=rtpmap:96 H265/90000", "a=fmtp:96 sprop-vps=x"]),
        (
            "m=application 0 RTP/AVP 107\na=rtpmap:107 vnd.onvif.metadata/90000\nm=VIDEO 5004 RTP/SAVPF 96\na=rtpmap:96 H264/90000",
            ["a=rtpmap:96 H264/90000"]
        ),
    ]) func describesAVideoPlainly(sdp: String, more: [String]) {
        #expect(Self.lines("v=0\r\ns=x\r\n" + sdp) == [Self.video] + more)
    }

    @Test func keepsWhatNeedsNoDescription() {
        #expect(Self.lines("m=video 0 RTP/AVP 26\na=framesize:26 640-480") == ["m=video 0 RTP/AVP 26"])
        let sound = "m=audio 0 RTP/AVP 0\na=sendonly\nm=audio 0 RTP/AVP 8\nm=video 0 RTP/AVP 26\nm=text 0 RTP/AVP 98"
        #expect(Self.lines(sound, takesSound: true) == ["m=video 0 RTP/AVP 26", "m=audio 0 RTP/AVP 8"])
        #expect(Self.lines(sound) == ["m=video 0 RTP/AVP 26"])
    }

    @Test func knowsTheSoundThatIsLeft() {
        let both = "m=video 0 RTP/AVP 26\nm=audio 0 RTP/AVP 8"
        #expect(SessionDescription(both, takesSound: false).leavesSound)
        #expect(!SessionDescription(both, takesSound: true).leavesSound)
        #expect(!SessionDescription("m=video 0 RTP/AVP 26", takesSound: false).leavesSound)
        #expect(!SessionDescription(both + "\na=sendonly", takesSound: false).leavesSound)
    }

    @Test func knowsWhetherThereAreSeveralVideos() {
        let one = "m=video 0 RTP/AVP 26\nm=audio 0 RTP/AVP 8"
        #expect(!SessionDescription(one, takesSound: true).hasSeveralVideos)
        let several = SessionDescription(one + "\nm=video 0 RTP/AVP 26", takesSound: true)
        #expect(several.hasSeveralVideos && several.tracks.count == 2)
    }

    @Test(arguments: [
        "", "m=", "m=video", "m=video 0 RTP/AVP", "m=video 0 RTP/AVP x", "m=video 0 RTP/AVP 999", "a=control:x",
    ])
    func findsNothingInNothing(sdp: String) { #expect(Self.lines(sdp, takesSound: true).isEmpty) }

    @Test(arguments: [
        (nil, "rtsp://h/a/"), ("*", "rtsp://h/a/"), ("", "rtsp://h/a/"), ("trackID=1", "rtsp://h/a/trackID=1"),
        ("/b", "rtsp://h/b"), ("rtsp://g/c", "rtsp://g/c"), ("RTSP://g/c", "RTSP://g/c"),
    ]) func leadsWhereControlSays(control: String?, address: String) {
        #expect(SessionDescription.address(control, base: "rtsp://h/a/") == address)
    }

    @Test func leadsFromABaseWithoutASlash() {
        #expect(SessionDescription.address("trackID=1", base: "rtsp://h/a") == "rtsp://h/a/trackID=1")
        #expect(SessionDescription.address("?track=1", base: "rtsp://h/a") == "rtsp://h/a?track=1")
        #expect(SessionDescription.address("/b", base: "rtsp://h") == "rtsp://h/b")
        #expect(SessionDescription.address("*", base: "rtsp://h/a") == "rtsp://h/a")
    }

    @Test func findsTheControlOfAllAndOfOne() {
        let description = SessionDescription(
            "v=0\na=control:rtsp://h/all\nm=video 0 RTP/AVP 26\na=Control: trackID=7 \n", takesSound: false)
        #expect(description.control == "rtsp://h/all" && description.tracks.first?.control == "trackID=7")
    }
}
