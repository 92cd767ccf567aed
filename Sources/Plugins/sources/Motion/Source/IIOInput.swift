// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Captures the motion of an IIO device, and opens it again after it was gone. Used by one thread at a time.
final class IIOInput: LiveMotion {
    private let name: String
    private let rate: Double?
    private let context: StageContext
    private let reports: MotionReports
    private let places: IIOPlaces

    private var device: IIODevice?
    private var bytes = [UInt8](repeating: 0, count: 64 << 10)
    private var stamps = IIOStamps()

    /// [control thread] Opens nothing.
    init(
        _ name: String, rate: Double?, context: StageContext, reports: MotionReports, places: IIOPlaces = IIOPlaces()
    ) {
        (self.name, self.rate, self.context, self.reports, self.places) = (name, rate, context, reports, places)
    }

    func negotiate() throws -> MotionFormat {
        do throws(IIOFault) {
            let device = try IIODevice(name, places: places)
            let format = MotionFormat(contents: device.contents, sampleRate: rate ?? device.rate)
            context.note("\(device.name) (\(device.id)): \(format)")
            return format
        } catch {
            throw error.error
        }
    }

    func start() throws {
        do throws(IIOFault) { try open() } catch { throw error.error }
        reports.begin()
        if let rate, let device, device.rate > 0, abs(device.rate - rate) > rate / 1000 {
            context.log(
                "'\(device.name)' gives \(device.rate.optionJSON.text()) samples per second instead of the \(rate.optionJSON.text()) that 'rate' asks for."
            )
        }
    }

    private func open() throws(IIOFault) {
        let device = try IIODevice(name, places: places)
        try device.open(rate: rate)
        self.device = device
        stamps = IIOStamps()
    }

    func stop() {
        device?.close()
        device = nil
    }

    // MARK: Scans

    func take(into samples: inout [MotionSample]) throws -> Bool {
        guard let device, let layout = device.layout else { return comeBack() }
        context.waiting { device.wait() }
        switch device.read(into: &bytes) {
        case .nothing:
            guard device.isThere else {
                lose("the device '\(name)' is gone")
                return false
            }
            reports.silent(
                "the device '\(name)' has given nothing for a second",
                "The stage keeps waiting. If this lasts, check `dmesg` for messages of the device's driver.")
            return false
        case .gone(let code):
            lose("the device '\(name)' \(code == ENODEV ? "is gone" : "cannot be read"): \(ErrorText.of(code))")
            return false
        case .bytes(let count):
            return take(count, layout, &samples)
        }
    }

    /// - Returns: Whether the device was lost.
    private func take(_ count: Int, _ layout: IIOLayout, _ samples: inout [MotionSample]) -> Bool {
        let now = context.clock.now()
        let size = layout.scanBytes
        let scans = stride(from: 0, to: count, by: size).map { layout.sample(bytes[$0..<$0 + size]) }
        if let newest = scans.last?.stamp, let jump = stamps.look(newest, now: now) { reports.clockJumped(by: jump) }
        for (index, scan) in scans.enumerated() {
            var sample = scan.sample
            let time = scan.stamp.map { stamps.time($0) } ?? spread(index, of: scans.count, before: now)
            sample.time = MediaTime(nanoseconds: time)
            samples.append(sample)
        }
        return reports.came(at: now)
    }

    /// The time of a scan without a stamp: the newest is from now, the others lie before it at the device's rate.
    private func spread(_ index: Int, of count: Int, before now: Int64) -> Int64 {
        let rate = device?.rate ?? 0
        let period = rate > 0 ? 1e9 / rate : 1e6
        return now - Int64(Double(count - 1 - index) * period)
    }

    // MARK: Gone

    private func lose(_ reason: String) {
        device?.close()
        device = nil
        reports.lost(reason, "The stage keeps trying to open it again.")
    }

    /// Looks for the device. Always false: samples come with the next call.
    private func comeBack() -> Bool {
        let turn = context.clock.now() + Int64(LiveWait.milliseconds) * 1_000_000
        guard context.sleep(until: min(reports.live.nextTry, turn)),
            context.clock.now() >= reports.live.nextTry
        else { return false }
        do throws(IIOFault) { try open() } catch { reports.missed(error) }
        return false
    }
}

/// The time stamps of an IIO device on the chain clock. Pure.
///
/// They are of the monotonic clock, which is also the chain's, since `current_timestamp_clock` was set to it. A
/// kernel without that choice uses the wall clock, and a sensor hub may write its own times: then the offset is
/// estimated.
struct IIOStamps {
    private var offset: ClockOffset?

    /// Looks at the newest stamp of what was read now.
    ///
    /// - Returns: By how much a foreign clock has jumped; else nil.
    mutating func look(_ stamp: Int64, now: Int64) -> Int64? {
        let stamp = MediaTime(nanoseconds: stamp).nanoseconds
        if offset == nil, abs(now &- stamp) > ClockOffset.mostStep { offset = ClockOffset() }
        return offset?.take(stamp: stamp, arrival: now)
    }

    /// The time of a stamp on the chain clock.
    func time(_ stamp: Int64) -> Int64 { MediaTime(nanoseconds: stamp).nanoseconds &+ (offset?.offset ?? 0) }
}
