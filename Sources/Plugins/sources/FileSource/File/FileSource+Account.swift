// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Compares what was read with what the file promises.
extension FileSource {
    /// [setup thread] Says what is promised, before the first picture.
    func openAccount(_ file: MediaFile, _ track: VideoTrack) {
        guard !options.loop else { return }
        context.inputAccount = InputAccount(
            promised: isWhole ? file.indexed(track.index, after: -1)?.shown : nil)
        context.showFigures { [context] in context.inputAccount?.json ?? .object([]) }
    }

    /// [stage thread] Reports damage, and shows how much there is in the figures.
    ///
    /// - Parameters:
    ///   - damaged: How many packets and pictures.
    ///   - tick: Of the item that is about to be given.
    func noteDamage(_ damaged: Int, at tick: Int64?) {
        guard damaged > 0, damaged != context.inputAccount?.damaged else { return }
        if var account = context.inputAccount {
            account.damaged = damaged
            context.inputAccount = account
        }
        reports?.damage(damaged, at: tick.flatMap { track?.format.timeBase.time(ofTicks: $0) } ?? reached)
    }

    /// [stage thread] Says how much damage there was altogether, once.
    func reportDamage(_ reader: some TrackReader) {
        reports?.damageAltogether(
            reader.damaged, concealed: reader.concealed,
            first: reader.firstConcealed.flatMap { track?.format.timeBase.time(ofTicks: $0) })
    }

    /// [stage thread] Reports what is wrong with the file, and closes the account.
    ///
    /// - Parameters:
    ///   - isWhereFileEnds: False where the file goes on, but is not played any further.
    ///   - isRangeDone: Whether the chain asked for no more of the file.
    func reportEnd(_ reader: some TrackReader, isWhereFileEnds: Bool = true, isRangeDone: Bool = false) {
        guard let reports, let file, let track else { return }
        if isWhereFileEnds { audio?.endPictures() }
        reportDamage(reader)
        reports.impossibleTimesAltogether(reader.times)
        if let first = file.timeline.firstOutlier { reports.outliers(file.timeline.outliers, first: first) }
        let index = file.indexed(track.index, after: reader.notes.position)
        var found: FileShortfall?
        if isWhereFileEnds {
            found = shortfall(reader, index, file, track, isRangeDone: isRangeDone)
            if let shown = found ?? (isRangeDone ? nil : doubt(file, track)) { reports.endsEarly(shown) }
        }
        guard !options.loop else { return }
        var account = InputAccount(promised: isWhole ? index?.shown : nil)
        account.given = shown
        account.damaged = max(reader.damaged - damagedBeforeRange, 0)
        // Whoever cuts a stream does not cut it at a keyframe. Other containers begin with one.
        if file.isStream { account.damaged = max(account.damaged - reader.damagedAtStart, 0) }
        // In streams without a header the mark only says that the stream's count of its packets jumps, as where two
        // recordings were joined.
        account.damaged =
            file.isHeaderless
            ? max(account.damaged - reader.marked, 0) : max(account.damaged, reader.notes.cut)
        account.shortfall =
            isWhereFileEnds
            ? found?.text(path)
            : "'\(path)' is played only up to \(end.seconds) s: the times of its next pictures lie beyond the chain's timeline"
        account.hasEnded = true
        context.inputAccount = account
    }

    private func shortfall(
        _ reader: some TrackReader, _ index: MediaFile.Index?, _ file: MediaFile, _ track: VideoTrack,
        isRangeDone: Bool
    ) -> FileShortfall? {
        let notes = reader.notes
        if !isRangeDone {
            let missing = index.map { $0.after ?? (isWhole ? max($0.packets - reader.packetsRead, 0) : 0) } ?? 0
            if missing > 0 { return .missing(missing, of: index?.packets ?? 0, cause: reader.readFault) }
            if !reader.readFault.isEmpty { return .unreadable(cause: reader.readFault) }
            // A length that a wrong time made says nothing.
            if file.timeline.outliers == 0, let early = endsEarly(file, track, hasIndex: index != nil) { return early }
            let missingBytes = max(promise.missingBytes, file.missingOfLastPicture(track.index))
            if missingBytes > 0 { return .bytes(missingBytes) }
        }
        if let hole = notes.missingCues(from: timeline.lower, isToEnd: !isRangeDone) {
            return .hole(track.format.timeBase.time(ofTicks: hole.first), places: hole.count)
        }
        if let gap = gap(notes, file, track, isRangeDone: isRangeDone) { return .gap(gap) }
        if isWhole, let shown = index?.shown ?? packetsToDecode(notes, file), let decoded = reader.decoded,
            file.hasPicturePerPacket(track.index)
        {
            let early = reader.firstDecodedTick.map { notes.early(before: $0) } ?? 0
            let missing = shown - decoded - early
            if missing > 0 { return .undecoded(missing, of: shown) }
        }
        return nil
    }

    /// The packets that must come out of the decoder, of containers whose packets are not cut from a stream; nil where the
    /// first one may depend on pictures that the file has not.
    private func packetsToDecode(_ notes: PacketNotes, _ file: MediaFile) -> Int? {
        let isContainer = ["matroska", "mov"].contains { file.formatName.hasPrefix($0) }
        return isContainer && notes.beginsWithKeyframe ? notes.shown : nil
    }

    /// [stage thread] Goes on looking through the container, which long files take some calls for; true at the end.
    func looksThroughContainer() -> Bool {
        guard !options.loop, let file, let track else { return true }
        if containerWalk == nil { containerWalk = file.containerWalk(track.index) }
        return containerWalk?.step() != true
    }

    /// The first gap of the container in what was played.
    private func gap(_ notes: PacketNotes, _ file: MediaFile, _ track: VideoTrack, isRangeDone: Bool) -> FileGap? {
        guard !options.loop else { return nil }
        let isFromStart = options.start == 0 && (context.part?.begin ?? .zero) <= .zero
        let lower =
            isFromStart ? nil : (timeline.lower ?? notes.firstTick).map { track.format.timeBase.time(ofTicks: $0) }
        return containerWalk?.gaps.first { gap in
            if let lower, let end = gap.end, end <= lower { return false }
            if isRangeDone, let begin = gap.begin, begin >= reached { return false }
            return true
        }
    }

    /// Whether the pictures end before the length that the file promises. The lengths of containers are rounded, and
    /// may not include the last picture's duration.
    private func endsEarly(_ file: MediaFile, _ track: VideoTrack, hasIndex: Bool) -> FileShortfall? {
        if isLastPart, let part = context.part,
            let length = hasIndex ? file.duration(track.index) : file.declaredLength(track.index)
        {
            // The pictures before the part were not counted, so only the length can be compared.
            let rate = track.format.frameRate
            let tolerance = MediaTime(seconds: max(0.25, rate.isZero ? 0 : 3 / rate.value))
            let reached = max(end, part.begin)
            let whole = length + track.format.timeBase.time(ofTicks: track.origin) - timeRange.shift
            return reached + tolerance < whole ? .endsAt(reached, of: whole) : nil
        }
        guard context.part == nil, !options.loop, shown > 0, let length = promise.length else { return nil }
        let wanted = timeRange.end.map { min($0, length) } ?? length
        return reached + tolerance < wanted ? .endsAt(reached, of: length) : nil
    }

    private var tolerance: MediaTime {
        max(MediaTime(seconds: 0.25), MediaTime(seconds: shown > 0 ? 3 * end.seconds / Double(shown) : 0))
    }

    /// A length that is worth a warning and no promise: such headers are written before the recording.
    private func doubt(_ file: MediaFile, _ track: VideoTrack) -> FileShortfall? {
        // That of a Matroska file is a promise, or that of another track.
        guard isWhole, !file.formatName.hasPrefix("matroska"), file.indexedPictures(track.index) == nil, shown > 0,
            let length = file.declaredLength(track.index), end + tolerance < length
        else { return nil }
        return .endsAt(end, of: length)
    }
}
