// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Decides which finished files of a recorder are removed, by their age and their total size. Pure.
struct RetentionPolicy {
    /// A file that is the recorder's own.
    struct File: Equatable {
        var path: String
        var bytes: Int64
        /// How long ago it was last written, nanoseconds.
        var age: Int64
        var order: RecordingOrder
        /// Nil only in tests of the policy.
        var identity: FileIdentity? = nil
    }

    /// Nanoseconds; nil keeps files of any age.
    let age: Int64?
    let byteLimit: Int64?

    init(seconds: Double?, megabytes: Double?) {
        age = seconds.map { Int64($0 * 1e9) }
        byteLimit = megabytes.map { Int64($0 * 1_000_000) }
    }

    var isOn: Bool { age != nil || byteLimit != nil }

    /// The files to remove, in the order in which they were recorded.
    ///
    /// - Parameters:
    ///   - files: All but the one being written.
    ///   - writing: Bytes of the one being written, which count too.
    func excess(_ files: [File], writing: Int64) -> [File] {
        let oldestFirst = files.sorted { $0.order < $1.order }
        var total = oldestFirst.reduce(writing) { Self.sum($0, $1.bytes) }
        return oldestFirst.filter { file in
            let isOld = age.map { file.age > $0 } ?? false
            let isMuch = byteLimit.map { total > $0 } ?? false
            guard isOld || isMuch else { return false }
            total -= min(file.bytes, total)
            return true
        }
    }

    /// Adds sizes without overflow: a sparse file may claim exabytes.
    static func sum(_ a: Int64, _ b: Int64) -> Int64 {
        let (sum, isTooMuch) = a.addingReportingOverflow(b)
        return isTooMuch ? .max : sum
    }
}

/// The place of a recording among those of its recorder: by its number, which counts on from run to run. Times are
/// compared only where numbers are equal: those of adopted files, and of two recorders that recorded at the same time.
struct RecordingOrder: Comparable {
    var number: Int64
    var unixMilliseconds: Int64
    var path: String

    static func < (a: RecordingOrder, b: RecordingOrder) -> Bool {
        (a.number, a.unixMilliseconds, a.path) < (b.number, b.unixMilliseconds, b.path)
    }
}

/// How old recordings are, however the wall clock was set in between. Pure.
///
/// The age of a file that this recorder has completed comes from the chain's clock alone. Of other files, marks and times
/// of the file system tell when they ended at the latest. A time of the future decides nothing, nor does one that cannot
/// be: then the file is as old as this recorder has seen it lie there unchanged.
struct RecordingAges {
    /// One moment, by the chain's clock and by the wall clock, in nanoseconds.
    struct Moment: Equatable {
        var clock: Int64
        var wall: Int64

        /// How far the wall clock is ahead.
        var offset: Int64 { wall - clock }
    }

    /// What is known of one file.
    struct File {
        var mark: RecordingMark
        /// When it was last written, nanoseconds since 1970, by the file system.
        var written: Int64
        /// When this recorder completed it, by the chain's clock; nil where it did not.
        var end: Int64? = nil
        /// Since when this recorder has seen it unchanged, by the chain's clock.
        var seen: Int64
    }

    /// When the recorder began.
    let start: Moment
    let now: Moment
    /// The start of the machine since which the chain's clock counts; 0 where it is unknown.
    let boot: UInt64

    /// More than a century, so that no sum overflows.
    private static let mostStep: Int64 = 4_000_000_000_000_000_000
    /// 36 years after a start of the machine.
    private static let latestClock: Int64 = 1 << 60

    /// How far the wall clock was ahead of the chain's during one start of the machine.
    private struct Boot {
        var first: Int64
        var last: Int64
        /// Whether the clock stood before the last recording of the start before it. Then it was wrong, as that of a
        /// machine without a battery, and its correction makes no file older.
        var wasBehind: Bool

        var step: Int64 { wasBehind ? 0 : min(max(0, last - first), RecordingAges.mostStep) }
    }

    /// - Returns: For each file nanoseconds, at least 0.
    func ages(of files: [File]) -> [Int64] {
        let order = files.indices.sorted { (files[$0].mark.number, $0) < (files[$1].mark.number, $1) }
        let (boots, later) = steps(order.map { files[$0].mark })
        // Of each start of the machine: the least offset since a file began. Of each run: when its next file began.
        var lowest: [UInt64: Int64] = [boot: min(start.offset, now.offset)]
        var next: [UInt64: Int64] = [:]
        var ages = files.map { _ in Int64(0) }
        for index in order.reversed() {
            let file = files[index]
            let mark = file.mark
            guard mark.run != 0 else {
                ages[index] = adopted(file, boots[boot]?.step ?? 0)
                continue
            }
            let offset = min(lowest[mark.boot] ?? mark.offset, mark.offset)
            lowest[mark.boot] = offset
            let end = latestEnd(file, offset: offset, next: next[mark.run])
            next[mark.run] = mark.clock
            ages[index] = age(file, end: end, last: boots[mark.boot]?.last ?? mark.offset, later[mark.boot] ?? 0)
        }
        return ages
    }

    /// The starts of the machine, and by how much the wall clock was set forward after each of them.
    private func steps(_ marks: [RecordingMark]) -> (boots: [UInt64: Boot], later: [UInt64: Int64]) {
        var boots: [UInt64: Boot] = [:]
        var order: [UInt64] = []
        var previous: Int64 = 0
        func see(_ boot: UInt64, _ moment: Moment) {
            if boots[boot] == nil {
                boots[boot] = Boot(first: moment.offset, last: moment.offset, wasBehind: moment.wall < previous)
                order.append(boot)
            }
            boots[boot]!.last = moment.offset
            previous = moment.wall
        }
        for mark in marks where mark.run != 0 { see(mark.boot, Moment(clock: mark.clock, wall: mark.unixTime)) }
        see(boot, start)
        see(boot, now)
        var later: [UInt64: Int64] = [:]
        var sum: Int64 = 0
        for boot in order.reversed() {
            later[boot] = sum
            sum = min(sum + boots[boot]!.step, Self.mostStep)
        }
        return (boots, later)
    }

    /// When a file ended at the latest, by the clock of its mark; nil where nobody knows.
    ///
    /// - Parameters:
    ///   - offset: How far the wall clock was ahead at least, since the file began.
    ///   - next: When the next file of its run began.
    private func latestEnd(_ file: File, offset: Int64, next: Int64?) -> Int64? {
        let written = file.written - offset
        guard file.written <= now.wall, file.mark.unixTime <= now.wall, written >= file.mark.clock,
            written <= Self.latestClock
        else {
            return next.map { max($0, file.mark.clock) }
        }
        return next.map { max(min($0, written), file.mark.clock) } ?? written
    }

    private func age(_ file: File, end: Int64?, last: Int64, _ later: Int64) -> Int64 {
        if let end = file.end { return max(0, now.clock - end) }
        let least = max(0, now.clock - file.seen)
        guard let end else { return least }
        if boot != 0, file.mark.boot == boot { return max(least, now.clock - end) }
        let plain = now.wall - (end + last)
        return plain > 0 ? max(least, plain - later) : least
    }

    private func adopted(_ file: File, _ step: Int64) -> Int64 {
        let last = max(file.mark.unixTime, file.written)
        let least = max(0, now.clock - file.seen)
        return last <= now.wall ? max(least, now.wall - last - step) : least
    }
}

extension RecordingMark {
    /// When the first picture was taken, nanoseconds since 1970.
    var unixTime: Int64 { unixMilliseconds * 1_000_000 }
    /// How far the wall clock was ahead of the chain's then, nanoseconds.
    var offset: Int64 { unixTime - clock }
}
