// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How old recordings are at least, however clocks were set and whenever the machine started anew. Pure.
///
/// Two things are believed: the time since a start of the machine, and a wall clock that the kernel called synchronised.
/// What was recorded since the present start is dated by the former alone. A start during which the wall clock was
/// synchronised once is known, and so are all moments of it, also those before that. Of any other start only the order
/// of the running numbers tells: its files are older than each file of a later start, and so than the time that the
/// machine has run since.
///
/// Each age is a lower bound. It grows with the time that the machine runs, so that each file is old enough at last.
package struct RecordingAges {
    /// What is known of one file.
    package struct File {
        package var mark: RecordingMark
        /// When it was last written, nanoseconds since 1970, by the file system.
        package var written: Int64
        /// When this recorder completed it (``RecordingMoment/up``); nil where it did not.
        package var end: Int64? = nil
        /// Since when this recorder has seen it unchanged (``RecordingMoment/up``).
        package var seen: Int64

        package init(mark: RecordingMark, written: Int64, end: Int64? = nil, seen: Int64) {
            (self.mark, self.written, self.end, self.seen) = (mark, written, end, seen)
        }
    }

    package let now: RecordingMoment
    /// The present start of the machine (``RecordingMark/currentBoot()``); 0 where it is unknown.
    package let boot: UInt64
    /// How far the wall clock was ahead of ``RecordingMoment/up`` at least, when it was synchronised in this run; nil where
    /// it was not.
    package var offset: Int64?

    /// A start of the machine before the present one.
    private struct Boot {
        /// The lowest and the highest number of its files; nil where it has only adopted ones.
        var numbers: ClosedRange<Int64>?
        /// The last moment of it that a mark tells.
        var lastUp: Int64 = 0
        /// How far the wall clock was ahead at most, when it was synchronised; nil where it was not.
        var offset: Int64?
        /// How long ago it began, and how long ago it ended, at least.
        var (beganAgo, endedAgo): (Int64, Int64) = (0, 0)

        mutating func see(_ mark: RecordingMark) {
            lastUp = max(lastUp, mark.made?.up ?? mark.clock)
            if let made = mark.made, made.isSynchronised {
                // Marks have milliseconds.
                offset = max(offset ?? .min, made.offset + 1_000_000)
            }
            guard mark.run != 0 else { return }
            let (low, high) = (numbers?.lowerBound ?? mark.number, numbers?.upperBound ?? mark.number)
            numbers = min(low, mark.number)...max(high, mark.number)
        }
    }

    /// - Returns: For each file nanoseconds, at least 0.
    package func ages(of files: [File]) -> [Int64] {
        let isHere = { (mark: RecordingMark) in boot != 0 && mark.boot == boot }
        let offset = files.reduce(offset) { least, file in
            guard isHere(file.mark), let made = file.mark.made, made.isSynchronised else { return least }
            return min(least ?? .max, made.offset)
        }
        let trueNow = offset.map { now.up + $0 }
        let boots = boots(of: files, trueNow)
        let order = files.indices.filter { files[$0].mark.run != 0 && files[$0].mark.boot != 0 }.sorted {
            (files[$0].mark.boot, files[$0].mark.number, $0) < (files[$1].mark.boot, files[$1].mark.number, $1)
        }
        let ends = latestEnds(of: files, order)
        let isSteady = isSteady(files, order)
        return files.indices.map { index in
            let file = files[index]
            let mark = file.mark
            if let end = file.end { return max(0, now.up - end) }
            var age = max(0, now.up - file.seen)
            let beganAgo = isHere(mark) ? now.up : boots[mark.boot]?.beganAgo
            guard mark.run != 0 else { return max(age, adopted(file, beganAgo: beganAgo, trueNow)) }
            age = max(age, boots[mark.boot]?.endedAgo ?? 0)
            if let beganAgo, let end = ends[index] { age = max(age, beganAgo - end) }
            if let trueNow, isSteady[index] { age = max(age, trueNow - file.written) }
            return age
        }
    }

    /// Who adopts a file vouches for the file's time. From then on it ages as any other.
    private func adopted(_ file: File, beganAgo: Int64?, _ trueNow: Int64?) -> Int64 {
        guard let made = file.mark.made else {
            return trueNow.map { $0 - max(file.mark.unixTime, file.written) } ?? 0
        }
        return max(0, made.wall - file.mark.unixTime) + max(0, (beganAgo ?? 0) - made.up)
    }

    /// The starts of the machine before the present one.
    private func boots(of files: [File], _ trueNow: Int64?) -> [UInt64: Boot] {
        guard boot != 0 else { return [:] }
        var boots: [UInt64: Boot] = [:]
        for file in files where file.mark.boot != boot && file.mark.boot != 0 {
            boots[file.mark.boot, default: Boot()].see(file.mark)
        }
        if let trueNow {
            for (id, found) in boots {
                // A start that would have been after the present one was not synchronised to the truth.
                guard let offset = found.offset, offset + found.lastUp > trueNow - now.up + 1_000_000_000 else {
                    continue
                }
                boots[id]!.offset = nil
            }
        }
        // Those whose numbers are all greater were later. Where numbers overlap, as after somebody has put files back,
        // neither was.
        let byHighest = boots.sorted { ($0.value.numbers?.upperBound ?? 0) > ($1.value.numbers?.upperBound ?? 0) }.map(
            \.key)
        let byLowest = boots.filter { $0.value.numbers != nil }
            .sorted { $0.value.numbers!.lowerBound > $1.value.numbers!.lowerBound }.map(\.key)
        // How long ago the earliest of the later starts was, and its true time where the present one is not known.
        var (earliest, latestTruth, next) = (now.up, Int64.min, 0)
        for id in byHighest {
            var found = boots[id]!
            if let numbers = found.numbers {
                while next < byLowest.count, let later = boots[byLowest[next]],
                    later.numbers!.lowerBound > numbers.upperBound
                {
                    earliest = max(earliest, later.beganAgo)
                    if let offset = later.offset { latestTruth = max(latestTruth, later.beganAgo + offset) }
                    next += 1
                }
                found.endedAgo = earliest
            } else {
                found.endedAgo = now.up
            }
            found.beganAgo = Self.sum(found.endedAgo, found.lastUp)
            if let offset = found.offset {
                if let trueNow {
                    found.beganAgo = max(now.up, trueNow - offset)
                    // Numbers that do not agree with true times say nothing.
                    if found.endedAgo > found.beganAgo - found.lastUp { found.endedAgo = now.up }
                } else if latestTruth > offset {
                    found.beganAgo = max(found.beganAgo, latestTruth - offset)
                }
            }
            boots[id] = found
        }
        return boots
    }

    /// By when each file was complete (``RecordingMoment/up`` in its start of the machine); nil where nobody knows.
    ///
    /// It was when a later file of that start was made, if the file's time does not say that it was still being written.
    ///
    /// - Parameter order: By starts of the machine and numbers.
    private func latestEnds(of files: [File], _ order: [Int]) -> [Int64?] {
        var ends = [Int64?](repeating: nil, count: files.count)
        for place in order.indices {
            let file = files[order[place]]
            let mark = file.mark
            for other in order[(place + 1)...].prefix(Self.mostLooks) {
                let later = files[other].mark
                guard later.boot == mark.boot else { break }
                guard let made = later.made, made.up >= mark.made?.up ?? mark.clock else { continue }
                // A recorder completes a file with the motion of its last pictures while it writes the next one.
                let late = max(0, file.written - made.wall)
                guard late == 0 || later.run == mark.run && late < 2_000_000_000 else { continue }
                ends[order[place]] = made.up + late
                break
            }
        }
        return ends
    }

    /// Whether the time at which each file was last written is true: the wall clock was synchronised when the file was made,
    /// and nobody has set it in that start of the machine since, as far as marks tell.
    private func isSteady(_ files: [File], _ order: [Int]) -> [Bool] {
        var isSteady = files.map { _ in false }
        var present: UInt64 = 0
        var (least, most): (Int64, Int64) = (.max, .min)
        for index in order.reversed() {
            let mark = files[index].mark
            if mark.boot != present {
                present = mark.boot
                (least, most) = present == boot ? (now.offset, now.offset) : (.max, .min)
            }
            guard let made = mark.made else { continue }
            (least, most) = (min(least, made.offset), max(most, made.offset))
            isSteady[index] = made.isSynchronised && most - least < 1_000_000_000 && files[index].written >= made.wall
        }
        return isSteady
    }

    /// The most later files that are asked.
    private static let mostLooks = 64

    private static func sum(_ a: Int64, _ b: Int64) -> Int64 { min(a, 1 << 61) + min(b, 1 << 61) }
}

extension RecordingMark {
    /// When the first picture was taken, nanoseconds since 1970.
    var unixTime: Int64 { unixMilliseconds * 1_000_000 }
}
