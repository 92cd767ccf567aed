// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Recordings

/// Puts the files of one image-sink under their names: each complete, and none in the place of somebody else's.
///
/// Used on the stage thread, and on the control thread before that.
final class ImageFiles {
    let pattern: FileNamePattern
    /// The only name, where `path` is one; links are followed.
    let single: String?
    /// The number of the last mark (``RecordingMark/number``).
    var lastMark: Int64 = 0
    private var names: PatternNames
    private let overwrite: Bool
    /// The stage, as marks name it.
    private let owner: String
    private let isRing: Bool
    private let files: RunFiles
    private let boot = RecordingMark.currentBoot()

    /// Files are held under this name.
    static let holder = "image-sink"

    /// - Parameters:
    ///   - folder: The folder to which a relative path is relative.
    ///   - owner: The stage, as its marks name it.
    init(_ options: ImageSinkOptions, folder: String, owner: String, files: RunFiles) throws(OptionFault) {
        pattern = try FileNamePattern(options.path).placed(in: folder)
        single = pattern.isFixed ? FileNames.followed(pattern.path(at: 0, number: 0)) : nil
        overwrite = options.overwrite
        names = PatternNames(pattern, overwrite: overwrite, holder: Self.holder)
        isRing = options.keepSeconds != nil || options.keepMegabytes != nil
        self.owner = owner
        self.files = files
    }

    /// [control thread] What is wrong with the place of the files; nil when they can be made there. Creates nothing.
    var fault: FrameHostError? {
        guard let single else {
            return RecordingFault.ofFolder(pattern.folder) ?? RecordingFault.ofLength(pattern.path(at: 0, number: 1))
        }
        if let fault = RecordingFault.ofPath(single, overwrite: true) { return fault }
        do throws(FileRefusal) {
            _ = try replaceable(single)
            return nil
        } catch { return fault(single, error) }
    }

    /// What is known of a picture beside its bytes.
    struct Moment {
        /// When it was taken, nanoseconds since 1970.
        var unixTime: Int64
        /// The same by the chain's clock.
        var clock: Int64
        /// The present moment.
        var made: RecordingMoment
    }

    /// [stage thread] Writes a file, and the folders that its pattern asks for.
    ///
    /// - Parameter syncs: Whether it is on the disk before it has its name.
    /// - Returns: Its name, its size and its mark, where it has one.
    /// - Throws: ``FrameHostError`` naming the path.
    func write(
        _ bytes: [UInt8], _ moment: Moment, syncs: Bool
    ) throws -> (path: String, bytes: Int, mark: RecordingMark?) {
        lastMark += 1
        guard let single else {
            return try names.make(at: moment.unixTime) { path throws(FileRefusal) in
                // Nobody has named this file, so what has the name stays, unless this stage has made it in an earlier run.
                let old = overwrite && !files.hasMade(path) ? ownFile(path) : nil
                return try put(bytes, path, replacing: old, moment, syncs: syncs)
            }
        }
        do throws(FileRefusal) {
            return try put(bytes, single, replacing: try replaceable(single), moment, syncs: syncs)
        } catch { throw fault(single, error) }
    }

    private func put(
        _ bytes: [UInt8], _ path: String, replacing old: FileIdentity?, _ moment: Moment, syncs: Bool
    ) throws(FileRefusal) -> (path: String, bytes: Int, mark: RecordingMark?) {
        let mark = mark(path, moment)
        let marked = mark.flatMap { MarkedPicture.file(bytes, with: $0) }
        let content = marked ?? bytes
        try files.put(path, content, replacing: old, as: Self.holder, syncs: syncs, isRenewed: single != nil)
        return (path, content.count, marked == nil ? nil : mark)
    }

    /// The mark of a file. In a batch, whose outputs are the same bytes whenever they are made, only files that may be
    /// removed or replaced have one.
    private func mark(_ path: String, _ moment: Moment) -> RecordingMark? {
        guard isRing || overwrite || !files.isReproducible else { return nil }
        return RecordingMark(
            recorder: owner, run: files.id, number: lastMark, file: FileNames.name(of: path),
            folder: RecordingMark.fingerprint(ofFolder: FileNames.folder(of: path)),
            unixMilliseconds: max(0, moment.unixTime / 1_000_000), clock: max(0, moment.clock), boot: boot,
            machine: RecordingMark.thisMachine, made: moment.made)
    }

    /// The file of the single name, which a new one may replace; nil where the name is free.
    ///
    /// - Throws: ``FileRefusal``: `.exists` for a file of somebody else.
    private func replaceable(_ path: String) throws(FileRefusal) -> FileIdentity? {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw status.st_mode & S_IFMT == S_IFDIR ? .isFolder : .notRegular
        }
        let identity = FileIdentity(status)
        // The inode of the file that was put there last is no proof: that may have gone, and its inode to another file.
        guard ownFile(path) == identity else { throw .exists }
        return identity
    }

    /// The file of this name that this stage has made, by its mark; nil where there is none.
    private func ownFile(_ path: String) -> FileIdentity? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let identity = FileIdentity(status)
        let folder = RecordingMark.fingerprint(ofFolder: FileNames.folder(of: path))
        let isOwn = MarkedFile.marks(of: path, meant: identity).contains {
            $0.names(FileNames.name(of: path), in: folder, recorder: owner)
        }
        return isOwn ? identity : nil
    }

    private func fault(_ path: String, _ refusal: FileRefusal) -> FrameHostError {
        guard refusal == .exists else { return RecordingFault.refused(path, refusal, holder: Self.holder) }
        return FrameHostError(
            .invalidConfiguration,
            what: "'\(path)' exists and has no mark that this stage (\(owner)) made it there, so it is not replaced",
            remedy: "Move it away, or name another file in 'path'.", option: "path")
    }
}
