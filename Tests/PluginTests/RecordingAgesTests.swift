// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder
@testable import Recordings

/// No recording counts as older than it is, whatever clocks show, and each is old enough at last.
@Suite struct RecordingAgesTests {
    private static let second: Int64 = 1_000_000_000
    private static let day: Int64 = 86_400

    // MARK: A machine of which the truth is known

    /// Starts of a machine, its clocks, and a recorder on it.
    private struct Machine {
        struct Recorded {
            var file: RecordingAges.File
            /// When it ended.
            var end: Int64
            /// By how much its time can be wrong: its length, where somebody set a synchronised clock meanwhile.
            var doubt: Int64
        }

        var random: SplitRandom
        /// Whether the wall clock is always synchronised.
        let isAlwaysRight: Bool
        /// Nanoseconds since 1970.
        var truth: Int64 = 1_790_000_000 * second
        var boot: UInt64 = 0
        var booted: Int64 = 0
        /// What the wall clock is ahead.
        var wrong: Int64 = 0
        var isSynchronised = false
        var files: [Recorded] = []
        // Of the present run.
        var run: UInt64 = 0
        var lastNumber: Int64 = 0
        var seen: [Int64: Int64] = [:]
        var ends: [Int64: Int64] = [:]
        var offset: Int64?

        init(seed: UInt64, isAlwaysRight: Bool) {
            random = SplitRandom(state: seed)
            self.isAlwaysRight = isAlwaysRight
        }

        var moment: RecordingMoment {
            RecordingMoment(up: truth - booted, wall: truth + wrong, isSynchronised: isSynchronised)
        }

        mutating func seconds(_ range: ClosedRange<Int64>) -> Int64 {
            Int64.random(in: range, using: &random) * second + Int64.random(in: 0..<second, using: &random)
        }

        mutating func start() {
            truth += seconds(1...(Bool.random(using: &random) ? 60 : 5 * day))
            boot += 1
            booted = truth
            isSynchronised = isAlwaysRight
            // At 1970, at the last shutdown, ahead, behind, right.
            wrong =
                isAlwaysRight
                ? 0 : [-truth + 5 * second, -seconds(1...day), seconds(1...3 * day), 0].randomElement(using: &random)!
            truth += seconds(1...20)
            begin()
        }

        mutating func begin() {
            run += 1
            lastNumber = files.map(\.file.mark.number).max() ?? 0
            (seen, ends, offset) = ([:], [:], nil)
        }

        mutating func set() {
            guard !isAlwaysRight else { return }
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1: (wrong, isSynchronised) = (0, true)
            case 2: isSynchronised = false
            case 3:
                (wrong, isSynchronised) = (wrong + seconds(1...[60, 2 * day].randomElement(using: &random)!), false)
            case 4:
                (wrong, isSynchronised) = (wrong - seconds(1...[60, 2 * day].randomElement(using: &random)!), false)
            default: break
            }
        }

        mutating func record() {
            lastNumber += 1
            let now = moment
            let past = min(now.up, seconds(0...30))
            let mark = RecordingMark(
                recorder: "r", run: run, number: lastNumber, file: "a", folder: 1,
                unixMilliseconds: max(0, now.wall - past) / 1_000_000, clock: now.up - past, boot: boot, made: now)
            let (began, error) = (truth, wrong)
            truth += seconds(1...40)
            if Int.random(in: 0..<4, using: &random) == 0 { set() }
            truth += seconds(1...40)
            let doubt = now.isSynchronised && wrong < error ? truth - began : 0
            files.append(
                Recorded(
                    file: RecordingAges.File(mark: mark, written: moment.wall, seen: 0), end: truth, doubt: doubt))
            ends[lastNumber] = moment.up
            // Killed before the recorder heard of it.
            if Int.random(in: 0..<5, using: &random) == 0 { begin() }
        }

        /// What the recorder takes for the files' ages now.
        mutating func look() -> [Int64] {
            let now = moment
            if now.isSynchronised { offset = min(offset ?? .max, now.offset) }
            let shown = files.map { recorded in
                var file = recorded.file
                let number = file.mark.number
                seen[number] = seen[number] ?? now.up
                file.seen = seen[number]!
                file.end = file.mark.run == run ? ends[number] : nil
                return file
            }
            return RecordingAges(now: now, boot: boot, offset: offset).ages(of: shown)
        }
    }

    @Test(arguments: [false, true]) func neverTakesAFileForOlderThanItIs(isAlwaysRight: Bool) {
        var (removed, exact, first) = (0, 0, UInt64(1))
        if let seed = ProcessInfo.processInfo.environment["FRAMEHOST_SEED"].flatMap(UInt64.init) { first = seed }
        for seed in first..<(first + 400) {
            var machine = Machine(seed: seed &* 7919, isAlwaysRight: isAlwaysRight)
            let keep = machine.seconds(30...Int64.random(in: 40...20_000, using: &machine.random))
            for _ in 0..<Int.random(in: 2..<7, using: &machine.random) {
                machine.start()
                for _ in 0..<Int.random(in: 1..<12, using: &machine.random) {
                    machine.record()
                    machine.set()
                    if Bool.random(using: &machine.random) { machine.truth += machine.seconds(0...600) }
                    let ages = machine.look()
                    var kept: [Machine.Recorded] = []
                    for (recorded, age) in zip(machine.files, ages) {
                        let trueAge = machine.truth - recorded.end
                        #expect(
                            age >= 0 && age <= trueAge + recorded.doubt,
                            "seed \(seed): file \(recorded.file.mark.number)")
                        if isAlwaysRight {
                            #expect(trueAge - age < 5_000_000, "seed \(seed): file \(recorded.file.mark.number)")
                            exact += 1
                        }
                        if age > keep { removed += 1 } else { kept.append(recorded) }
                    }
                    machine.files = kept
                }
            }
            // The machine runs on: each file goes at last, whatever the clock shows.
            let count = machine.files.count
            machine.truth += keep + Self.second
            machine.set()
            #expect(machine.look().count { $0 > keep } == count, "seed \(seed)")
        }
        #expect(removed > 1000 && (exact > 1000) == isAlwaysRight)
    }

    // MARK: Cases

    /// Times in seconds.
    private func moment(_ up: Int64, _ wall: Int64, synchronised: Bool = false) -> RecordingMoment {
        RecordingMoment(up: up * Self.second, wall: wall * Self.second, isSynchronised: synchronised)
    }

    private func file(
        _ number: Int64, _ made: RecordingMoment?, boot: UInt64, run: UInt64? = nil, written: Int64, seen: Int64,
        end: Int64? = nil
    ) -> RecordingAges.File {
        let mark = RecordingMark(
            recorder: "r", run: run ?? boot, number: number, file: "a", folder: 1,
            unixMilliseconds: (made?.wall ?? written * Self.second) / 1_000_000, clock: made?.up ?? 0, boot: boot,
            made: made)
        return RecordingAges.File(
            mark: mark, written: written * Self.second, end: end.map { $0 * Self.second }, seen: seen * Self.second)
    }

    private func ages(
        _ now: RecordingMoment, boot: UInt64, synchronised offset: Int64? = nil, _ files: RecordingAges.File...
    ) -> [Int64] {
        RecordingAges(now: now, boot: boot, offset: offset.map { $0 * Self.second }).ages(of: files).map {
            ($0 + 2_000_000) / Self.second
        }
    }

    /// The clock is two days ahead when the machine starts: nothing of the start before is two days old. Once it is
    /// synchronised, the age is the true one.
    @Test func aClockThatIsAheadMakesNothingOlder() {
        let old = [
            file(1, moment(100, 100_100, synchronised: true), boot: 1, written: 100_160, seen: 10),
            file(2, moment(160, 100_160, synchronised: true), boot: 1, written: 100_200, seen: 10),
        ]
        #expect(ages(moment(15, 100_300 + 2 * Self.day), boot: 2, old[0], old[1]) == [15, 15])
        // Back by NTP: the start was at 100270.
        #expect(
            ages(moment(30, 100_300, synchronised: true), boot: 2, synchronised: 100_270, old[0], old[1]) == [140, 100])
    }

    /// Without a battery each start begins at 1970. A step forward early in a start makes nothing of that start older, and
    /// tells when all of it was.
    @Test func aClockThatBeginsAnewMakesNothingOlder() {
        // A file of a minute before the clock was set, and one of a minute behind it.
        let here = [
            file(1, moment(10, 10), boot: 1, written: 70, seen: 70, end: 70),
            file(2, moment(70, 100_070, synchronised: true), boot: 1, written: 100_130, seen: 130, end: 130),
        ]
        #expect(
            ages(moment(140, 100_140, synchronised: true), boot: 1, synchronised: 100_000, here[0], here[1]) == [
                70, 10,
            ])
        // After the next start, which nobody has set yet, and when it is.
        let later = here.map { file in
            var file = file
            (file.end, file.seen) = (nil, 5 * Self.second)
            return file
        }
        #expect(ages(moment(20, 20), boot: 2, later[0], later[1]) == [20, 20])
        #expect(
            ages(moment(50, 100_350, synchronised: true), boot: 2, synchronised: 100_300, later[0], later[1]) == [
                280, 220,
            ])
    }

    /// Nobody ever sets the clock: the time that the machine has run since is counted over all starts.
    @Test func countsWhatTheMachineHasRunSince() {
        let files = (1...4).flatMap { boot in
            (0..<3).map { index in
                let up = 10 + Int64(index) * 100
                return file(
                    Int64(boot * 3 + index), moment(up, up), boot: UInt64(boot), written: up + 100, seen: 5)
            }
        }
        let ages = RecordingAges(now: moment(20, 20), boot: 5).ages(of: files).map { $0 / Self.second }
        // 20 s of this start, 210 s and more of each other one.
        #expect(ages == [750, 650, 650, 540, 440, 440, 330, 230, 230, 120, 20, 20], "\(ages)")
    }

    /// A mark of the future decides nothing: the file is as old as those after it.
    @Test(arguments: [false, true]) func aMarkOfTheFutureGoesToo(synchronised: Bool) {
        let future = file(1, moment(10, 5_000_000, synchronised: synchronised), boot: 1, written: 5_000_060, seen: 1990)
        let next = file(2, moment(10, 100_010, synchronised: true), boot: 2, written: 100_070, seen: 1990)
        let ages = ages(moment(2000, 110_000, synchronised: true), boot: 3, synchronised: 108_000, future, next)
        #expect(ages[1] == 9930 && ages[0] >= ages[1], "\(ages)")
    }

    /// Two recorders of the same name at the same time: the numbers tell nothing of the last file of a run.
    @Test func aFileThatWasWrittenBesideAnotherIsNoOlder() {
        let long = file(1, moment(10, 1010), boot: 1, run: 5, written: 1900, seen: 905)
        let short = file(2, moment(20, 1020), boot: 1, run: 6, written: 1080, seen: 905)
        let next = file(3, moment(80, 1080), boot: 1, run: 6, written: 1100, seen: 905)
        #expect(ages(moment(910, 1910), boot: 1, long, short, next) == [5, 830, 5])
    }

    /// Files that somebody has put back have numbers that do not agree with the order of starts.
    @Test func numbersThatOverlapTellNothing() {
        let back = (0..<3).map { index in
            file(Int64(index * 10), moment(100 + Int64(index), 100), boot: 1, written: 100, seen: 5)
        }
        let new = file(5, moment(100, 100), boot: 2, written: 160, seen: 5)
        #expect(ages(moment(10, 10), boot: 3, new, back[0], back[1], back[2]) == [10, 11, 10, 10])
    }

    /// Recordings of the version before, whose marks do not say when they were made.
    @Test func marksOfEarlierVersions() {
        let old = [1, 2].map { file($0, nil, boot: 1, run: 7, written: 1000, seen: 50) }
        #expect(ages(moment(60, 9000), boot: 1, old[0], old[1]) == [10, 10])
        #expect(ages(moment(60, 9000, synchronised: true), boot: 2, synchronised: 8940, old[0], old[1]) == [60, 60])
    }

    @Test func adoptedFiles() {
        func adopted(_ made: RecordingMoment?, boot: UInt64) -> RecordingAges.File {
            var file = self.file(0, made, boot: boot, run: 0, written: 1000, seen: 50)
            file.mark.unixMilliseconds = 1_000_000
            return file
        }
        // A thousand seconds old when it was adopted, by the clock of that moment.
        let file = adopted(moment(20, 2000), boot: 1)
        #expect(ages(moment(60, 99_999), boot: 1, file) == [1040])
        #expect(ages(moment(60, 99_999), boot: 2, file) == [1060])
        // By the version before: only a clock that is right tells.
        #expect(ages(moment(60, 99_999), boot: 1, adopted(nil, boot: 0)) == [10])
        #expect(
            ages(moment(60, 3000, synchronised: true), boot: 1, synchronised: 2940, adopted(nil, boot: 0)) == [2000])
    }

    @Test func sumsWhateverMarksSay() {
        var files: [RecordingAges.File] = []
        let edges: [RecordingMoment?] =
            [nil]
            + [0, .max].flatMap { up in
                [0, .max].flatMap { wall in
                    [false, true].map { RecordingMoment(up: up, wall: wall, isSynchronised: $0) }
                }
            }
        for made in edges {
            for boot in UInt64(0)...12 {
                for written in [0, 8_000_000_000_999_999_999] as [Int64] {
                    var file = self.file(Int64(files.count), made, boot: boot, written: 0, seen: 0)
                    (file.written, file.mark.clock) = (written, 1 << 60)
                    if files.count % 5 == 0 { file.mark.run = 0 }
                    files.append(file)
                }
            }
        }
        for now in edges.compactMap(\.self) {
            for offset in [nil, now.offset] {
                let ages = RecordingAges(now: now, boot: 1, offset: offset)
                #expect(ages.ages(of: files).allSatisfy { $0 >= 0 })
                #expect(ages.ages(of: files.reversed()).allSatisfy { $0 >= 0 })
            }
        }
        var status = stat()
        (status.st_mtim.tv_sec, status.st_mtim.tv_nsec) = (.max, .max)
        #expect(status.boundedTime == 8_000_000_000_999_999_999)
        (status.st_mtim.tv_sec, status.st_mtim.tv_nsec) = (.min, .min)
        #expect(status.boundedTime == 0)
    }
}
