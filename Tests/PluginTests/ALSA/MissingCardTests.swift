// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import ALSASource

/// A card that is there and gives nothing.
private final class SilentCard: SoundCard {
    let name: String
    let format = CardFormat(samples: .s16, rate: 48_000, channels: 2, period: 480, buffer: 24_000)
    var title: String { name }
    var stableName: String { name }

    init(_ name: String) { self.name = name }

    func start() {}
    func wait(milliseconds: Int32) -> Bool { false }
    func look() -> CardStatus { CardStatus(stamp: 0, available: 0) }
    func read(_ bytes: UnsafeMutableRawPointer, frames: Int) -> Int { 0 }
    func resume() -> Bool { true }
    func close() {}
}

/// `alsa-source` with a card that is gone after it was opened once; the device's name may say that it cannot be used.
private final class FleetingMicrophone: Source {
    static let info = ALSASource.info
    private let source: ALSASource
    var options: ALSASourceOptions

    init(options: ALSASourceOptions, context: StageContext) {
        self.options = options
        var isGone = false
        source = ALSASource(options: options, context: context) { name, _ in
            switch name {
            case "unusable": throw CaptureFault.noFormat(name)
            case "impossible": throw CaptureFault.impossible(name, rate: 0, channels: 0, period: 0, buffer: 0)
            default: break
            }
            guard !isGone else { throw CardFault(call: "snd_pcm_open", errno: ENODEV) }
            isGone = true
            return SilentCard(name)
        }
    }

    var demand: StageDemand { source.demand }
    func negotiate() throws -> MediaFormat { try source.negotiate() }
    func start() throws { try source.start() }
    func produce(_ output: Output) throws -> SourceProgress { try source.produce(output) }
    func stop() { source.stop() }
}

/// Cards that go between the check and the start, and those for which it does not help to wait.
@Suite struct MissingCardTests {
    @Test func waitsForACardThatGoesBetweenTheCheckAndTheStart() throws {
        let driver = try StageDriver(
            FleetingMicrophone.self, options: #"{ "device": "fleeting", "ifMissing": "wait" }"#)
        #expect(driver.context.recovering == "there is no device 'fleeting' for capture")
        #expect(
            driver.takeEvents().filter { $0.level == .warning }.map(\.text) == [
                "there is no device 'fleeting' for capture: the chain starts without it."
            ])
        for _ in 0..<5 { #expect(try driver.produce() == .more) }
        try driver.stop()
    }

    @Test func failsWhereItMustNotWaitForACardThatGoes() {
        let fault = #expect(throws: FrameHostError.self) {
            try StageDriver(FleetingMicrophone.self, options: #"{ "device": "fleeting" }"#)
        }
        #expect(fault?.code == .unavailable)
        #expect(fault?.remedy.contains(#""ifMissing": "wait" starts the chain without this one."#) == true)
    }

    @Test(arguments: [("unusable", FrameHostError.Code.invalidConfiguration), ("impossible", .callFailed)])
    func doesNotWaitForACardThatCannotBeUsed(device: String, code: FrameHostError.Code) {
        let fault = #expect(throws: FrameHostError.self) {
            try StageDriver(
                FleetingMicrophone.self, options: #"{ "device": "\#(device)", "ifMissing": "wait" }"#)
        }
        #expect(fault?.code == code)
    }
}
