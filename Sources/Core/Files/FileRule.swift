// SPDX-License-Identifier: Apache-2.0

/// What a run wants to do to a name.
public enum FileAct: CaseIterable, Sendable {
    /// Make a new file.
    case create
    /// Put a new file in place of a regular one, whose content is lost.
    case replace
    /// Remove the name.
    case remove
    /// Put a finished file of the same meaning under the name: the figures of this run in place of those of the
    /// last, or the rewritten copy of a recording.
    case exchange
    /// Empty a regular file and write it anew, or write into a device or pipe.
    case rewrite
}

/// What is known about a name before something is done to it.
public struct FileFacts: Equatable, Sendable {
    /// What has the name.
    public enum Kind: Equatable, Sendable {
        /// Nothing.
        case absent
        /// A regular file.
        case regular
        /// A symbolic link. A link that is followed shows as what it leads to.
        case link
        /// A folder.
        case folder
        /// A pipe, a terminal or another character device: bytes go in one after the other.
        case stream
        /// A block device or a socket.
        case other
        /// It cannot be looked at (errno).
        case unknown(Int32)
    }

    /// What this process does with the file elsewhere.
    public enum Use: Equatable, Sendable {
        /// Nothing.
        case nobody
        /// The stage of this name reads it.
        case reads(String)
        /// The stage of this name writes it.
        case writes(String)
    }

    /// What other programs do with the file, as far as a lock tells (flock(2)).
    public enum Lock: Equatable, Sendable {
        /// No other program has a lock, and this process has one until the act is done.
        case free
        /// Another program has a shared lock.
        case read
        /// Another program has an exclusive lock.
        case written
        /// The file system has no locks.
        case missing
        /// The lock cannot be asked for (errno).
        case unknown(Int32)
    }

    /// What has the name.
    public var kind = Kind.regular
    /// Whether it is the file that the caller knows, where it knows one: device and inode are equal.
    public var isMeant = true
    /// What this process does with the file elsewhere.
    public var use = Use.nobody
    /// What other programs do with the file.
    public var lock = Lock.free
    /// Whether this run made the file, or another run of this process.
    public var isOwn = false
    /// Whether nobody may write the file: there is no `w` in its rights.
    public var isProtected = false

    /// A regular file that nobody else uses.
    public init() {}
}

/// Why nothing was done.
public enum FileRefusal: Error, Equatable, Sendable {
    /// There is a file of that name.
    case exists
    /// There is no file of that name.
    case absent
    /// It is a folder.
    case isFolder
    /// It is not a regular file.
    case notRegular
    /// Another file has this name by now.
    case changed
    /// The stage of this name reads it.
    case readHere(String)
    /// The stage of this name writes it.
    case writtenHere(String)
    /// Another program reads it.
    case readElsewhere
    /// Another program writes it.
    case writtenElsewhere
    /// The file system has no locks, so that nobody can tell whether another program uses it.
    case noLocks
    /// This run made the file, or another run of this process.
    case isOwn
    /// Nobody may write the file: there is no `w` in its rights.
    case isProtected
    /// The pipe has no reader.
    case noReader
    /// Whether it may be done cannot be found out (errno).
    case unknown(Int32)
    /// It may be done, but the kernel refused it (errno).
    case failed(Int32)
}

/// Decides whether a run may create, replace, remove or empty a name. Only this type decides it, and it does nothing
/// else.
///
/// What cannot be found out is refused: a file that another program may use counts as used.
public enum FileRule {
    /// Why the act must not be done; nil when it may.
    public static func refusal(of act: FileAct, _ facts: FileFacts) -> FileRefusal? {
        switch facts.kind {
        case .unknown(let code): return .unknown(code)
        case .absent: return act == .remove ? .absent : !facts.isMeant ? .changed : nil
        case _ where act == .create: return .exists
        case .folder: return .isFolder
        case .stream where act == .rewrite: return nil
        case .link, .stream, .other: return .notRegular
        case .regular: break
        }
        if !facts.isMeant { return .changed }
        switch facts.use {
        case .writes(let name): return .writtenHere(name)
        case .reads(let name): return .readHere(name)
        case .nobody: break
        }
        if facts.isProtected { return .isProtected }
        switch facts.lock {
        case .free: break
        case .read: return .readElsewhere
        case .written: return .writtenElsewhere
        case .unknown(let code): return .unknown(code)
        // A run knows without a lock which files it has made. Content that is renewed under a name that a person
        // gave is not lost.
        case .missing: if !facts.isOwn, act == .remove || act == .replace { return .noLocks }
        }
        // A run removes old recordings of its own only by age or size, never to free their name for the next one.
        if facts.isOwn, act == .replace || act == .rewrite { return .isOwn }
        return nil
    }
}

/// How a whole file is written under a name that a person gave.
public enum WriteWay: Equatable, Sendable {
    /// A new file is written beside it, and takes its name when it is complete.
    case exchange
    /// The file is emptied and written anew, where a new file would lose owner, rights or further names.
    case inPlace
    /// The file is this program's own standard output or error, and is appended to.
    case append(descriptor: Int32)

    /// Chooses a way.
    ///
    /// - Parameters:
    ///   - kind: What has the name now.
    ///   - names: The number of hard links.
    ///   - keepsOwner: Whether a new file of this user would have the same owner and group.
    ///   - descriptor: Standard output or error, where that is the same file.
    public init(_ kind: FileFacts.Kind, names: Int, keepsOwner: Bool, descriptor: Int32?) {
        if let descriptor {
            self = .append(descriptor: descriptor)
        } else {
            switch kind {
            case .absent: self = .exchange
            case .regular: self = names == 1 && keepsOwner ? .exchange : .inPlace
            default: self = .inPlace
            }
        }
    }
}
