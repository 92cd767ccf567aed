// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Testing

@testable import ALSASource

/// A card that is there and gives nothing, until it is pulled.
private final class SilentCard: SoundCard {
    let name: String
    let stableName: String
    var isPulled = false
    let format = CardFormat(samples: .s16, rate: 48_000, channels: 2, period: 480, buffer: 24_000)
    var title: String { name }

    init(_ name: String, stableName: String? = nil) { (self.name, self.stableName) = (name, stableName ?? name) }

    func start() {}
    func wait(milliseconds: Int32) throws(CardFault) -> Bool {
        if isPulled { throw CardFault(call: "snd_pcm_avail_update", errno: ENODEV) }
        return false
    }
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

/// `alsa-source` with a card that loses its number. After the first opening `hw:1,0` is another card and `hw:2,0` is
/// none. `hw:3,0` is none after the second opening, which is the first to know the card's id.
private final class RenumberedMicrophone: Source {
    static let info = ALSASource.info
    static let stableName = "hw:CARD=Webcam,DEV=0"
    private let source: ALSASource
    var options: ALSASourceOptions

    init(options: ALSASourceOptions, context: StageContext) {
        self.options = options
        var openings = 0
        source = ALSASource(options: options, context: context) { name, _ in
            openings += 1
            switch (name, openings) {
            case (RenumberedMicrophone.stableName, _), ("hw:3,0", 1): return SilentCard(name)
            case (_, 1), ("hw:3,0", 2): return SilentCard(name, stableName: RenumberedMicrophone.stableName)
            case ("hw:1,0", _): return SilentCard(name, stableName: "hw:CARD=Other,DEV=0")
            default: throw CardFault(call: "snd_pcm_open", errno: ENODEV)
            }
        }
    }

    /// The card that is open.
    var card: SilentCard? { source.session?.device as? SilentCard }
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
                "The chain starts with silence, and keeps trying to open the device: there is no device 'fleeting' for capture."
            ])
        for _ in 0..<5 { #expect(try driver.produce() == .more) }
        try driver.stop()
    }

    @Test func failsWhereItMustNotWaitForACardThatGoes() {
        let fault = #expect(throws: FrameHostError.self) {
            try StageDriver(FleetingMicrophone.self, options: #"{ "device": "fleeting" }"#)
        }
        #expect(fault?.code == .unavailable)
        #expect(fault?.remedy.contains(#"Set "ifMissing": "wait" to start the chain without the device."#) == true)
    }

    @Test(arguments: ["hw:1,0", "hw:2,0"]) func startsTheCardThatWasCheckedWhateverItsNumberIs(device: String) throws {
        let driver = try StageDriver(RenumberedMicrophone.self, options: #"{ "device": "\#(device)" }"#)
        #expect(driver.stage.card?.stableName == RenumberedMicrophone.stableName)
        #expect(driver.context.recovering == nil)
        try driver.stop()
    }

    @Test func looksForALostCardByTheIDThatOnlyTheStartHasFound() throws {
        let driver = try StageDriver(RenumberedMicrophone.self, options: #"{ "device": "hw:3,0" }"#)
        let card = try #require(driver.stage.card)
        card.isPulled = true
        #expect(try driver.produce() == .more)
        #expect(driver.stage.card == nil)
        for _ in 0..<100 where driver.stage.card == nil { #expect(try driver.produce() == .more) }
        #expect(driver.stage.card?.name == RenumberedMicrophone.stableName)
        try driver.stop()
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
