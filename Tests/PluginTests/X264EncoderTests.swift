import FrameCore
import Testing

@testable import X264Encoder

@Suite struct X264EncoderTests {
    @Test func opens() throws {
        let driver = try StageDriver(X264Encoder.self, input: .video(VideoFormat(.i420, width: 320, height: 240, frameRate: Rational(30))))
        #expect(driver.outputFormat?.encoded?.parameterSets.isEmpty == false)
    }
}
