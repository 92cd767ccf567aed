// SPDX-License-Identifier: Apache-2.0

/// How large the index of an MP4 file will be (`moov`, ISO/IEC 14496-12, 8.6 and 8.7): counted while its packets are
/// written.
struct IndexSize {
    private struct Track {
        var samples = 0
        var keys = 0
        /// Runs of equal durations (`stts`) and of equal distances from DTS to PTS (`ctts`).
        var durations = 0
        var offsets = 0
        var lastDTS: Int64 = 0
        var lastDuration: Int64 = -1
        var lastOffset = Int64.min
    }

    private var tracks: [Track]
    private var extra: Int
    private var chunks = 0
    private var lastTrack = -1
    private var bytes = 0
    /// The track of motion. Its packets come at once up to a picture's time, but lie between those of the other
    /// tracks in the rewritten file.
    private let motion: Int?

    init(trackCount: Int, extradataBytes: Int, motion: Int? = nil) {
        self.motion = motion
        tracks = Array(repeating: Track(), count: trackCount)
        extra = extradataBytes
    }

    mutating func add(track index: Int, pts: Int64, dts: Int64, bytes count: Int, isKey: Bool) {
        let track = tracks[index]
        tracks[index].samples += 1
        if isKey { tracks[index].keys += 1 }
        if track.samples > 0, dts - track.lastDTS != track.lastDuration {
            tracks[index].durations += 1
            tracks[index].lastDuration = dts - track.lastDTS
        }
        if pts - dts != track.lastOffset { tracks[index].offsets += 1 }
        tracks[index].lastDTS = dts
        tracks[index].lastOffset = pts - dts
        if index != motion {
            if index != lastTrack { chunks += 1 }
            lastTrack = index
        }
        bytes += count
    }

    /// Bytes to reserve: those of the tables, and some room for everything else.
    var reserved: Int {
        // libavformat begins a new chunk (offset 8 bytes, `stsc` 12) at a change of track and after a megabyte at most.
        // Each packet of another track can lie between two of the motion's.
        let between = motion.map { motion in
            let others = tracks.reduce(0) { $0 + $1.samples } - tracks[motion].samples
            return 2 * min(tracks[motion].samples, others)
        }
        let offsets = 20 * (chunks + (between ?? 0) + bytes >> 20 + 2 + tracks.count)
        let tables = tracks.enumerated().reduce(0) {
            let (index, track) = $1
            // All packets of motion have one size, and none is marked as a key.
            let perSample = index == motion ? 0 : 4 * track.samples + 4 * track.keys
            return $0 + perSample + 8 * (track.durations + 3) + 8 * (track.offsets + 3)
        }
        return offsets + tables + extra + 2048 * (1 + tracks.count)
    }
}

/// The time scale of a movie, in which edit lists count.
enum MovieTicks {
    /// The least common multiple of all tracks' ticks per second if it fits into an `Int32`; if not, that of as many
    /// tracks as fit, starting with the pictures.
    static func common(_ ticks: [Int64]) -> Int64 {
        var common = ticks.first ?? 1000
        for rate in ticks.dropFirst() where rate > 0 {
            var (a, b) = (common, rate)
            while b != 0 { (a, b) = (b, a % b) }
            let next = common / a * rate
            if next <= Int64(Int32.max) { common = next }
        }
        return common
    }
}
