import FrameCore
import Testing

@testable import Recorder

@Suite struct RecorderTests {
    @Test func x() throws { #expect(Container(path: "a.MP4") == .mp4) }
}
