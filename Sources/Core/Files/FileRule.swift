/// What is to be done to a name.
public enum FileAct: CaseIterable, Sendable {
    /// Make a new file.
    case create
    /// Put a new file in the place of a regular one, whose content goes.
    case replace
    /// Take the name away.
    case remove
    /// Put a finished file of the same meaning under the name: figures of this run for those of the last, a recording's
    /// rewritten copy.
    case exchange
    /// Empty a regular file and write it anew, or write into a device or pipe.
    case rewrite
}

/// What is known of a name when something is to be done to it.
public struct FileFacts: Equatable, Sendable {
    public enum Kind: Equatable, Sendable {
        case absent
        case regular
        /// A symbolic link. Those that are followed show as what they lead to.
        case link
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
        case nobody
        /// By whom.
        case reads(String)
        case writes(String)
    }

    /// What other programs do with it, as far as a lock says (flock(2)).
    public enum Lock: Equatable, Sendable {
        /// Nobody has one, and until the act is done this process has.
        case free
        /// Somebody has a shared one.
        case read
        /// Somebody has one alone.
        case written
        /// The file system has none.
        case missing
        /// It cannot be asked for (errno).
        case unknown(Int32)
    }

    public var kind = Kind.regular
    /// It is the file the caller knows, where it knows one: device and inode are equal.
    public var isMeant = true
    public var use = Use.nobody
    public var lock = Lock.free
    /// This run has made the file.
    public var isOwn = false
    /// Nobody may write it: no `w` in its rights.
    public var isProtected = false

    public init() {}
}

/// Why nothing was done.
public enum FileRefusal: Error, Equatable, Sendable {
    case exists, absent, isFolder, notRegular
    /// Another file has this name by now.
    case changed
    case readHere(String)
    case writtenHere(String)
    case readElsewhere, writtenElsewhere
    case noLocks
    case isOwn
    case isProtected
    /// The pipe has no reader.
    case noReader
    /// Whether it may be done cannot be found out (errno).
    case unknown(Int32)
    /// It may be done, and the kernel refused (errno).
    case failed(Int32)
}

/// Whether a name may be created, replaced, removed or emptied. Pure: the one place where framehost decides so.
///
/// What cannot be found out is refused: a file that may be somebody's is treated as somebody's.
public enum FileRule {
    /// Nil when it may be done.
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
        // What this run has made it knows by itself; and content that is renewed by name, as a person asked for, is not
        // lost.
        case .missing: if !facts.isOwn, act == .remove || act == .replace { return .noLocks }
        }
        // Old recordings of its own are removed by age or size only, never for the next one's name.
        if facts.isOwn, act == .replace || act == .rewrite { return .isOwn }
        return nil
    }
}

/// How a whole file is written under a name that a person gave. Pure.
public enum WriteWay: Equatable, Sendable {
    /// A new file beside it takes its name when it is complete.
    case exchange
    /// Emptied and written anew, where another file would lose owner, rights or further names.
    case inPlace
    /// The file is this program's own standard output or error: what follows goes behind what is there.
    case append(descriptor: Int32)

    /// - Parameters:
    ///   - kind: What has the name now.
    ///   - names: Hard links.
    ///   - keepsOwner: A new file of this user's would have the same owner and group.
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
