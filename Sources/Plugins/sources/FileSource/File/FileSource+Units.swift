// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CodedVideo
import FrameCore

/// Passes on access units as they are: `"decode": false`.
extension FileSource {
    /// [control thread] Decides what will be given, and from which keyframe on. Afterwards the reader has read
    /// ahead to it.
    func negotiateUnits(_ file: MediaFile, _ track: VideoTrack) throws -> EncodedFormat {
        try UnitTrack.check(file, track)
        let reader = try UnitReader(file, track: track.index, promise: promise)
        let timeBase = track.format.timeBase
        let asked = options.start > 0 ? track.origin.plus(timeBase.ticks(of: MediaTime(seconds: options.start))) : nil
        var entry: Int64?
        if let asked {
            if reader.hidden?.isInParts == true { throw FileFault.playsParts(path) }
            entry = try reader.keyframe(upTo: asked)?.tick
            try reader.enter(at: entry)
        }
        guard try reader.readAhead() else {
            throw FileFault.noKeyframe(file.path, searched: reader.packetsBeforeKeyframe)
        }
        let units = try UnitTrack(file, track, reader)
        if let asked, let entry, entry != asked { noteStart(entry, track) }
        if asked == nil, let first = reader.pts, first < track.origin, !reader.isHidden { entry = first }
        noteHidden(reader.hidden)
        unitReader = reader
        unitTrack = units
        unitTimeline = UnitTimeline(
            timeBase: timeBase, origin: track.origin, entry: entry,
            end: options.duration.map { options.start + $0 }, reorderDepth: units.format.reorderDepth)
        return units.format
    }

    private func noteStart(_ entry: Int64, _ track: VideoTrack) {
        let begin = track.format.timeBase.time(ofTicks: entry.minus(track.origin))
        context.note(
            "'start' is \(options.start) s, but access units must start at a keyframe: '\(path)' starts at the keyframe at \((begin.seconds * 1000).rounded() / 1000) s"
        )
    }

    /// Says how many pictures an edit list hides, and go on.
    private func noteHidden(_ hidden: HiddenPictures?) {
        guard let hidden, hidden.neededCount > 0 else { return }
        context.note(
            "'\(path)' hides \(hidden.count) of its \(hidden.packetCount) pictures by an edit list, but later pictures may need \(hidden.neededCount) of the hidden ones to be decoded. With \"decode\": false these are passed on too. In an MP4 or MOV file those before the first shown picture are hidden again; elsewhere players show them"
        )
    }

    /// What an edit list hides where the file stands in a list, so that it cannot be hidden again; nil: nothing.
    func hiddenText(atBegin: Bool, atEnd: Bool) -> String? {
        guard let file, let track, let index = file.indexed(track.index, after: -1), index.shown < index.packets else {
            return nil
        }
        let first = Int(fh_av_index_hidden_first(file.stream(track.index)))
        // Pictures that only reordering leaves behind the end, as each trimmed file has, move nothing away noticeably.
        let last = index.packets - index.shown - first
        let isNoticed = last > (unitTrack?.format.reorderDepth ?? 0) + 1
        let hidden = (atBegin ? first : 0) + (atEnd && isNoticed ? last : 0)
        guard hidden > 0 else { return nil }
        return
            "'\(path)' hides \(hidden) of its \(index.packets) pictures by an edit list, but in the middle of a list they cannot be hidden again, and their time would move the pictures away from the sound"
    }

    // MARK: One access unit

    /// [stage thread] One step of the reader: an access unit, or none yet.
    func produceUnit(_ reader: UnitReader, _ output: Output) throws -> SourceProgress {
        if let isRangeGiven { return try endPass(reader, isRangeDone: isRangeGiven) }
        switch try reader.step() {
        case .again: return .more
        case .ended: return try endPass(reader)
        case .unit: return try give(reader, output)
        }
    }

    private func give(_ reader: UnitReader, _ output: Output) throws -> SourceProgress {
        let duration = reader.durationTicks
        switch unitTimeline.place(pts: reader.pts, dts: reader.dts, duration: duration, isHidden: reader.isHidden) {
        case .end: return try endPass(reader, isRangeDone: true)
        case .beyond:
            reports?.timelineIsFull()
            reportEnd(reader, isWhereFileEnds: false)
            return .ended
        case .give(let pts, let dts):
            let timeBase = unitTimeline.timeBase
            let decodeTime = timeBase.time(ofTicks: dts)
            let isStep = passesStep(at: reader.pts ?? reader.dts)
            let ownPTS = timeBase.time(ofTicks: pts)
            if growsBeyond(ownPTS) { return try endPass(reader, isRangeDone: true) }
            let placed = place.of(ownPTS, decodedAt: decodeTime, isPart)
            guard waits(for: placed.dts) else { return .ended }
            let bytes = reader.bytes
            var unit = try output.makeAccessUnit(byteCount: bytes.count)
            unit.withMutableBytes { $0.copyMemory(from: bytes) }
            report(reader)
            (unit.pts, unit.dts) = placed
            unit.duration = timeBase.time(ofTicks: duration)
            unit.orientation = orientation
            unit.entry = reader.entry
            unit.isShown = !reader.isHidden || pts >= 0
            unit.isDiscontinuity = isStep || reader.followsLoss
            shown += 1
            shownInPass += 1
            end = max(end, ownPTS + unit.duration)
            if let tick = reader.pts { reached = max(reached, timeBase.time(ofTicks: tick) + unit.duration) }
            try output.emit(unit)
            return .more
        }
    }

    private func endPass(_ reader: UnitReader, isRangeDone: Bool = false) throws -> SourceProgress {
        reports?.leadingPictures(reader.leading)
        guard options.loop, shownInPass > 0 else {
            isRangeGiven = isRangeDone
            guard looksThroughContainer() else { return .more }
            reportEnd(reader, isRangeDone: isRangeDone)
            if shown == 0 {
                throw FileFault.nothingPlayed(path, packets: reader.packetsRead, isPart: options.isPart)
            }
            return .ended
        }
        beginPass()
        unitTimeline.beginPass()
        try reader.enter(at: unitTrack?.firstTick)
        return .more
    }

    private func report(_ reader: UnitReader) {
        guard let reports else { return }
        if reader.isKeyframe, let sets = unitTrack?.format.parameterSets,
            !reader.coding.hasAll(sets, in: reader.bytes)
        {
            reports.parameterSetsChange()
        }
        noteDamage(reader.damaged, at: reader.pts ?? reader.dts)
        reports.packetsBeforeKeyframe(reader.packetsBeforeKeyframe)
        reports.impossibleTimes(reader.times)
    }
}
