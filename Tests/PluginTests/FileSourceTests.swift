import FrameCore
import Testing

@testable import FileSource

@Suite struct FileSourceTests {
    @Test func x() throws { #expect(Orientation.fromDisplayMatrix([0, 65536, 0, -65536, 0, 0, 0, 0, 1 << 30])?.orientation == .right) }
}
