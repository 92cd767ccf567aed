// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FileSource

@Suite struct InputTimelineTests {
    private typealias Stamp = InputTimeline.Stamp

    private static func seconds(_ value: Double) -> MediaTime { MediaTime(nanoseconds: Int64((value * 1e9).rounded())) }

    /// Pictures at 25 a second and blocks of sound of 20 ms side by side, as a multiplexer writes them.
    private static func clip(_ length: Double, from begin: Double, pictures: Int = 0, sound: Int = 1) -> [Stamp] {
        let pictureCount = Int(length * 25)
        let soundCount = Int(length * 50)
        let all =
            (0..<pictureCount).map {
                let time = seconds(begin + Double($0) * 0.04)
                return Stamp(track: pictures, pts: time + seconds(0.08), dts: time, duration: seconds(0.04))
            }
            + (0..<soundCount).map {
                let time = seconds(begin + 0.08 + Double($0) * 0.02)
                return Stamp(track: sound, pts: time, dts: time, duration: seconds(0.02))
            }
        return all.sorted { $0.dts! < $1.dts! }
    }

    /// The packets' times on the timeline, in seconds.
    private static func place(_ stamps: [Stamp], closesGaps: Bool = true) -> (
        [(track: Int, pts: Double?, dts: Double)], InputTimeline
    ) {
        var timeline = InputTimeline(closesGaps: closesGaps)
        var placements: [InputTimeline.Placement] = []
        for stamp in stamps {
            timeline.add(stamp)
            while let placement = timeline.next() { placements.append(placement) }
        }
        timeline.end()
        while let placement = timeline.next() { placements.append(placement) }
        #expect(placements.count == stamps.count)
        let placed = zip(stamps, placements).map { stamp, placement in
            switch placement {
            case .shifted(let shift):
                return (stamp.track, stamp.pts.map { ($0 + shift).seconds }, (stamp.dts! + shift).seconds)
            case .replaced(let pts, let dts): return (stamp.track, pts?.seconds, dts.seconds)
            }
        }
        return (placed, timeline)
    }

    /// Of each track, from packet to packet.
    private static func steps(_ placed: [(track: Int, pts: Double?, dts: Double)], track: Int) -> [Double] {
        let times = placed.filter { $0.track == track }.map(\.dts)
        return zip(times.dropFirst(), times).map { $0 - $1 }
    }

    @Test func leavesTimesAsTheyAre() {
        let clip = Self.clip(4, from: 1.4)
        let (placed, timeline) = Self.place(clip)
        #expect(zip(placed, clip).allSatisfy { $0.dts == $1.dts!.seconds && $0.pts == $1.pts!.seconds })
        #expect(timeline.steps.isEmpty && timeline.outliers == 0)
    }

    /// Two clips behind each other, whatever their times: both tracks go on by the same amount.
    @Test(arguments: [0.0, 1.4, 3, 9.5, 13, 60, 3600, 95_000]) func joinsClips(begin: Double) {
        for length in [3.0, 3.5, 12] {
            let first = Self.clip(length, from: 5)
            let (placed, timeline) = Self.place(first + Self.clip(4, from: begin))
            let end = 5 + length
            // A step forward of up to ten seconds is a gap of the input.
            let isGap = begin >= end && begin - end < 9
            if isGap {
                #expect(timeline.steps.isEmpty, "\(begin) after \(length)")
                continue
            }
            #expect(timeline.steps.count == 1, "\(begin) after \(length)")
            #expect(timeline.outliers == 0)
            for track in 0...1 {
                let usual = track == 0 ? 0.04 : 0.02
                let steps = Self.steps(placed, track: track)
                #expect(
                    steps.allSatisfy { $0 > usual - 1e-6 && $0 < usual + 0.021 },
                    "track \(track), \(begin) after \(length): \(steps.filter { abs($0 - usual) > 1e-6 })")
            }
            // Sound stays where it is to its pictures.
            let shifts = zip(placed, first + Self.clip(4, from: begin)).map { $0.dts - $1.dts!.seconds }.suffix(300)
            #expect(shifts.allSatisfy { abs($0 - shifts.first!) < 1e-6 })
        }
    }

    @Test(arguments: [-50.0, -2, -0.02, 3.3 * 3600, 11]) func playsAnOutlierBetweenItsNeighbours(by: Double) {
        for place in [1, 40, 150, 298] {
            for closesGaps in [true, false] {
                var clip = Self.clip(4, from: 60)
                clip[place].dts = clip[place].dts! + Self.seconds(by)
                clip[place].pts = clip[place].pts! + Self.seconds(by)
                let (placed, timeline) = Self.place(clip, closesGaps: closesGaps)
                #expect(timeline.steps.isEmpty)
                for (index, one) in placed.enumerated() {
                    let right = Self.clip(4, from: 60)[index]
                    #expect(abs(one.dts - right.dts!.seconds) < 0.041, "packet \(index) of \(place) by \(by)")
                    if index != place { #expect(one.dts == right.dts!.seconds) }
                }
                #expect(timeline.outliers <= 1)
            }
        }
    }

    /// Pictures in the order I P B B, at 25 a second, with a gap of so long in front of the keyframe at 4 s; x264 gives the
    /// first ones behind it times of decoding from before it. Beside them blocks of sound.
    private static func reordered(gap: Double) -> [Stamp] {
        func shown(_ number: Int) -> Double { Double(number) * 0.04 + (number < 100 ? 0 : gap) }
        var order: [Int] = []
        for begin in stride(from: 0, to: 200, by: 25) {
            order.append(begin)
            for next in stride(from: begin + 3, to: begin + 25, by: 3) { order += [next, next - 2, next - 1] }
        }
        let pictures = order.enumerated().map { index, number in
            Stamp(
                track: 0, pts: seconds(1 + shown(number)),
                dts: seconds(1 + (index < 2 ? Double(index - 2) * 0.04 : shown(index - 2))), duration: seconds(0.04))
        }
        let sound = (0..<400).map { number in
            let time = seconds(1 + Double(number) * 0.02 + (number < 200 ? 0 : gap))
            return Stamp(track: 1, pts: time, dts: time, duration: seconds(0.02), isSound: true)
        }
        return (pictures + sound).sorted { $0.dts! < $1.dts! }
    }

    /// The PTS of one picture is wrong, and its time of decoding right: nothing else moves.
    @Test(arguments: [-5, 2, 13, 600, 5000.0]) func aWrongPTSMovesNothingElse(by: Double) {
        for place in [40, 150, 151, 152, 400] {
            for closesGaps in [true, false] {
                let right = Self.reordered(gap: 0)
                var clip = right
                let wrong = clip.indices.filter { clip[$0].track == 0 }[place / 3]
                clip[wrong].pts = clip[wrong].pts! + Self.seconds(by)
                let (placed, timeline) = Self.place(clip, closesGaps: closesGaps)
                #expect(timeline.steps.isEmpty && timeline.outliers == 1 && placed[wrong].pts == nil)
                for index in clip.indices {
                    #expect(placed[index].dts == right[index].dts!.seconds)
                    if index != wrong { #expect(placed[index].pts == right[index].pts!.seconds) }
                }
            }
        }
    }

    /// In a pause, the first pictures behind it are decoded before it. It stays, unless it is a step of the clock.
    @Test(arguments: [3.0, 13, 5000]) func knowsPicturesThatAreDecodedBeforeAPause(gap: Double) {
        let clip = Self.reordered(gap: gap)
        let (kept, pause) = Self.place(clip, closesGaps: false)
        #expect(pause.steps.isEmpty && pause.outliers == 0)
        #expect(zip(kept, clip).allSatisfy { $0.dts == $1.dts!.seconds && $0.pts == $1.pts!.seconds })
        guard gap > 10 else { return }
        let (placed, step) = Self.place(clip, closesGaps: true)
        #expect(step.steps.count == 1 && step.outliers == 0)
        for (one, right) in zip(placed, Self.reordered(gap: 0)) {
            #expect(abs(one.dts - right.dts!.seconds) < 1e-6 && abs((one.pts ?? 0) - right.pts!.seconds) < 1e-6)
        }
    }

    /// One stamp of sound is wrong by less than a second, of one packet or of many that share it.
    @Test(arguments: [(1, 0.5), (1, 0.9), (40, 0.9), (20, 0.3)]) func aWrongStampOfSoundMovesNothingElse(
        count: Int, by: Double
    ) {
        let right = Self.reordered(gap: 0)
        var clip = right
        for index in clip.indices.filter({ clip[$0].track == 1 })[120..<120 + count] {
            clip[index].pts = clip[index].pts! + Self.seconds(by)
            clip[index].dts = clip[index].pts
        }
        let (placed, timeline) = Self.place(clip)
        #expect(timeline.outliers == count && timeline.steps.isEmpty)
        #expect(zip(placed, right).allSatisfy { abs($0.dts - $1.dts!.seconds) < 0.001 })
        // Sound that pauses for as long is as it is.
        let pausing = right.map { stamp in
            var stamp = stamp
            if stamp.track == 1, stamp.dts! > Self.seconds(3) {
                stamp.dts = stamp.dts! + Self.seconds(by)
                stamp.pts = stamp.dts
            }
            return stamp
        }.sorted { $0.dts! < $1.dts! }
        let (kept, pause) = Self.place(pausing)
        #expect(pause.outliers == 0 && zip(kept, pausing).allSatisfy { $0.dts == $1.dts!.seconds })
    }

    @Test func leavesGapsOfFilesWhoseTimesDoNotStep() {
        let stamps = Self.clip(3, from: 0) + Self.clip(3, from: 3600)
        let (placed, timeline) = Self.place(stamps, closesGaps: false)
        #expect(timeline.steps.isEmpty && timeline.outliers == 0)
        #expect(zip(placed, stamps).allSatisfy { $0.dts == $1.dts!.seconds })
    }

    /// A picture each half minute, with and without a time of decoding.
    @Test(arguments: [true, false]) func takesPicturesThatComeSeldomAsTheyAre(hasDTS: Bool) {
        let stamps = (0..<20).map { number in
            let time = Self.seconds(Double(number) * 30)
            return Stamp(track: 0, pts: time, dts: hasDTS ? time : nil, duration: .zero)
        }
        var timeline = InputTimeline(closesGaps: true)
        for stamp in stamps { timeline.add(stamp) }
        timeline.end()
        var shifts: [InputTimeline.Placement] = []
        while let placement = timeline.next() { shifts.append(placement) }
        #expect(timeline.steps.isEmpty && timeline.outliers == 0)
        #expect(shifts == Array(repeating: .shifted(by: .zero), count: 20))
    }

    /// Pictures alone step: the sound goes on, and they go on beside it.
    @Test(arguments: [-3600.0, 3600]) func stepsOneTrackAlone(by: Double) {
        let clip = Self.clip(8, from: 5000).map { stamp in
            var stamp = stamp
            if stamp.track == 0, stamp.dts! >= Self.seconds(5004) {
                stamp.dts = stamp.dts! + Self.seconds(by)
                stamp.pts = stamp.pts! + Self.seconds(by)
            }
            return stamp
        }
        let (placed, timeline) = Self.place(clip)
        #expect(timeline.steps.count == 1)
        for track in 0...1 {
            let usual = track == 0 ? 0.04 : 0.02
            #expect(Self.steps(placed, track: track).allSatisfy { abs($0 - usual) < 1e-6 })
        }
    }

    /// Clips and faults at random: times of each track rise, and the whole lasts as long as its parts.
    @Test func staysWholeWhateverIsJoined() {
        var numbers = SeededGenerator(state: 11)
        for round in 0..<300 {
            var stamps: [Stamp] = []
            var length = 0.0
            for _ in 0..<Int.random(in: 2...5, using: &numbers) {
                let part = Double(Int.random(in: 50...250, using: &numbers)) * 0.04
                var begin = Double.random(in: 0...95_000, using: &numbers)
                if let last = stamps.last?.dts?.seconds {
                    // Steps by up to ten seconds forward are gaps of the input, which stay.
                    while begin > last - 0.2, begin < last + 11 {
                        begin = Double.random(in: 0...95_000, using: &numbers)
                    }
                }
                var clip = Self.clip(part, from: begin)
                if Bool.random(using: &numbers) {
                    let place = Int.random(in: 5..<clip.count - 20, using: &numbers)
                    let by = Self.seconds(Double.random(in: -90_000...90_000, using: &numbers))
                    clip[place].dts = clip[place].dts! + by
                    clip[place].pts = clip[place].pts! + by
                }
                stamps += clip
                length += part
            }
            let (placed, _) = Self.place(stamps)
            for track in 0...1 {
                #expect(Self.steps(placed, track: track).allSatisfy { $0 >= 0 }, "round \(round)")
                let times = placed.filter { $0.track == track }.map(\.dts)
                #expect(abs(times.max()! - times.min()! - length) < 0.5, "round \(round), track \(track)")
            }
        }
    }

    @Test func standsAnyNumbers() {
        var numbers = SeededGenerator(state: 3)
        for _ in 0..<2000 {
            var timeline = InputTimeline(
                shift: MediaTime(nanoseconds: .random(in: .min ... .max, using: &numbers)),
                closesGaps: Bool.random(using: &numbers))
            func any() -> MediaTime? {
                let number =
                    Int64.random(in: .min ... .max, using: &numbers) >> Int64.random(in: 0...63, using: &numbers)
                return Int.random(in: 0..<8, using: &numbers) == 0 ? nil : MediaTime(nanoseconds: number)
            }
            var given = 0
            for _ in 0..<60 {
                timeline.add(
                    Stamp(
                        track: Int.random(in: 0..<3, using: &numbers), pts: any(), dts: any(), duration: any() ?? .zero)
                )
                while timeline.next() != nil { given += 1 }
            }
            timeline.end()
            while timeline.next() != nil { given += 1 }
            #expect(given == 60)
        }
    }
}

/// The same numbers each time (SplitMix64).
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
