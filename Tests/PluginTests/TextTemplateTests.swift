// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Testing

@testable import Text

@Suite struct TextTemplateTests {
    private func text(_ source: String, frames: Int = 1, interval: Int64 = 40_000_000, from start: Int64 = 0) throws
        -> String
    {
        var values = TextValues(try TextTemplate(source), name: "door", chain: "yard", isUTC: true)
        for frame in 0..<frames {
            let time = start + Int64(frame) * interval
            _ = values.update(pts: time, frame: UInt64(frame), unixTime: 1_790_000_000_123_456_789 + time)
        }
        return String(decoding: values.text, as: UTF8.self)
    }

    @Test(arguments: [
        ("plain Ä漢", "plain Ä漢"), ("{{x}}", "{x}"), ("{name}:{frame}", "door:0"), ("{chain}/{name}", "yard/door"),
        ("{pts}", "0:00:00.000"),
        ("{seconds}", "0.000"),
        ("{date} {time}", "2026-09-21 14:13:20"), ("{time:%H:%M:%S.%3N}", "14:13:20.123"),
        ("{date:%A %-d. %B %Y %%}", "Monday 21. September 2026 %"),
        ("{fps}", "0.0"), ("", ""),
    ])
    func fillsFields(source: String, result: String) throws { #expect(try text(source) == result) }

    @Test func countsFramesAndTime() throws {
        #expect(try text("{frame} {pts} {seconds}", frames: 1501) == "1500 0:01:00.000 60.000")
        #expect(try text("{pts} {seconds}", from: -1_500_000_000) == "-0:00:01.500 -1.500")
        #expect(try text("{pts}", from: 100 * 3_600_000_000_000 + 1_000_000) == "100:00:00.001")
    }

    @Test func measuresTheRateOfTheTimeStamps() throws {
        #expect(try text("{fps}", frames: 2) == "25.0")
        #expect(try text("{fps}", frames: 100, interval: 33_366_667) == "30.0")
        #expect(try text("{fps}", frames: 50, interval: 250_000_000) == "4.0")
    }

    @Test func saysWhetherTheTextChanged() throws {
        var values = TextValues(try TextTemplate("{time}"), name: "", chain: "", isUTC: true)
        var changes: [Int] = []
        for frame in 0..<100 where values.update(pts: 0, frame: 0, unixTime: Int64(frame) * 40_000_000) {
            changes.append(frame)
        }
        #expect(changes == [0, 25, 50, 75])
    }

    @Test(arguments: [
        ("{", "'{' has no '}' after it", "Write '{{' for a brace in the text."),
        ("a}b", "'}' has no '{' before it", "Write '}}' for a brace in the text."),
        ("{frane}", "'{frane}' is not a field", "Did you mean '{frame}'?"),
        (
            "{xyzzy}", "'{xyzzy}' is not a field",
            "Use one of {date}, {time}, {frame}, {pts}, {seconds}, {fps}, {name}, {chain}, {motion.roll}, {motion.pitch}, or write '{{' for a brace in the text."
        ),
        ("{frame:4}", "'{frame}' takes no pattern", "Write '{frame}'; {date} and {time} take a strftime pattern."),
        (
            "{time:%H:%Q}", "'%Q' is not a conversion of strftime(3)",
            "Use those of strftime(3), such as %Y-%m-%d %H:%M:%S. Also allowed: %3N for milliseconds, %% for a percent sign."
        ),
        (
            "{time:50%}", "'%' is not a conversion of strftime(3)",
            "Use those of strftime(3), such as %Y-%m-%d %H:%M:%S. Also allowed: %3N for milliseconds, %% for a percent sign."
        ),
    ])
    func saysWhatIsWrong(source: String, what: String, remedy: String) {
        #expect(throws: OptionFault(what, remedy: remedy)) { _ = try TextTemplate(source) }
    }

    /// A camera that is turned clockwise has up on its left.
    @Test func writesHowTheCameraIsHeld() throws {
        func text(_ up: SIMD3<Float>?) throws -> String {
            var values = TextValues(try TextTemplate("{motion.roll}/{motion.pitch}"), name: "", chain: "", isUTC: true)
            var sample = MotionSample(time: .zero)
            if let up { (sample.contents, sample.acceleration) = (.acceleration, up * 9.81) }
            _ = values.update(
                pts: 0, frame: 0, unixTime: 0,
                motion: up.map { _ in Motion(sample: sample, age: 0, isExtrapolated: false) })
            return String(decoding: values.text, as: UTF8.self)
        }
        #expect(try text(SIMD3(0, -1, 0)) == "0.0/0.0")
        #expect(try text(SIMD3(-0.5, -0.866_025_4, 0)) == "30.0/0.0")
        #expect(try text(SIMD3(0.5, -0.866_025_4, 0)) == "-30.0/0.0")
        #expect(try text(SIMD3(0, -0.707_106_8, 0.707_106_8)) == "0.0/45.0")
        #expect(try text(SIMD3(0, 0, -1)) == "–/-90.0")
        #expect(try text(nil) == "–/–")
    }

    @Test func readsLengths() throws {
        #expect(try Extent.decodeOption("5%").pixels(of: 200) == 10)
        #expect(try Extent.decodeOption(-24).pixels(of: 200) == -24)
        #expect(try Margin.decodeOption([10, "-2.5%"]) == Margin(x: .pixels(10), y: .share(-2.5)))
        #expect(throws: OptionFault.self) { _ = try Extent.decodeOption("5") }
        #expect(throws: OptionFault.self) { _ = try Margin.decodeOption([1, 2, 3]) }
    }
}
