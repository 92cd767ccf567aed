// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

@Suite struct FileRuleTests {
    private static func facts(_ change: (inout FileFacts) -> Void = { _ in }) -> FileFacts {
        var facts = FileFacts()
        change(&facts)
        return facts
    }

    /// What each fact alone means to creating, replacing, removing, exchanging and rewriting; nil: it may be done.
    private static let table: [(String, FileFacts, [FileRefusal?])] = [
        ("nothing there", facts { $0.kind = .absent }, [nil, nil, .absent, nil, nil]),
        (
            "nothing there any more", facts { ($0.kind, $0.isMeant) = (.absent, false) },
            [.changed, .changed, .absent, .changed, .changed]
        ),
        ("a file of nobody's", facts(), [.exists, nil, nil, nil, nil]),
        ("a link", facts { $0.kind = .link }, [.exists, .notRegular, .notRegular, .notRegular, .notRegular]),
        ("a folder", facts { $0.kind = .folder }, [.exists, .isFolder, .isFolder, .isFolder, .isFolder]),
        ("a pipe", facts { $0.kind = .stream }, [.exists, .notRegular, .notRegular, .notRegular, nil]),
        ("a disk", facts { $0.kind = .other }, [.exists, .notRegular, .notRegular, .notRegular, .notRegular]),
        ("who knows", facts { $0.kind = .unknown(EACCES) }, .init(repeating: .unknown(EACCES), count: 5)),
        ("another file by now", facts { $0.isMeant = false }, [.exists, .changed, .changed, .changed, .changed]),
        (
            "read here", facts { $0.use = .reads("cam") },
            [.exists, .readHere("cam"), .readHere("cam"), .readHere("cam"), .readHere("cam")]
        ),
        (
            "written here", facts { $0.use = .writes("r") },
            [.exists, .writtenHere("r"), .writtenHere("r"), .writtenHere("r"), .writtenHere("r")]
        ),
        (
            "read elsewhere", facts { $0.lock = .read },
            [.exists, .readElsewhere, .readElsewhere, .readElsewhere, .readElsewhere]
        ),
        (
            "written elsewhere", facts { $0.lock = .written },
            [.exists, .writtenElsewhere, .writtenElsewhere, .writtenElsewhere, .writtenElsewhere]
        ),
        (
            "not to be opened", facts { $0.lock = .unknown(EMFILE) },
            [.exists] + .init(repeating: .unknown(EMFILE), count: 4)
        ),
        ("no locks", facts { $0.lock = .missing }, [.exists, .noLocks, .noLocks, nil, nil]),
        ("no locks, our own", facts { ($0.lock, $0.isOwn) = (.missing, true) }, [.exists, .isOwn, nil, nil, .isOwn]),
        ("our own", facts { $0.isOwn = true }, [.exists, .isOwn, nil, nil, .isOwn]),
        (
            "write-protected", facts { $0.isProtected = true },
            [.exists, .isProtected, .isProtected, .isProtected, .isProtected]
        ),
    ]

    @Test(arguments: table.indices) func decidesAsTheTableSays(row: Int) {
        let (name, facts, expected) = Self.table[row]
        #expect(FileAct.allCases.map { FileRule.refusal(of: $0, facts) } == expected, "\(name)")
    }

    /// Over all 1,890 combinations: what is lost was nobody's, is what was meant, and everything about it is known.
    @Test func letsNothingGoThatMayBeSomebodys() {
        var allowed = 0
        var count = 0
        for kind in [FileFacts.Kind.absent, .regular, .link, .folder, .stream, .other, .unknown(EIO)] {
            for use in [FileFacts.Use.nobody, .reads("a"), .writes("b")] {
                for lock in [FileFacts.Lock.free, .read, .written, .missing, .unknown(EMFILE)] {
                    for flags in 0..<8 {
                        var facts = FileFacts()
                        (facts.kind, facts.use, facts.lock) = (kind, use, lock)
                        (facts.isMeant, facts.isOwn, facts.isProtected) = (
                            flags & 1 != 0, flags & 2 != 0, flags & 4 != 0
                        )
                        for act in FileAct.allCases {
                            count += 1
                            guard FileRule.refusal(of: act, facts) == nil else { continue }
                            allowed += 1
                            switch kind {
                            case .absent: #expect(act != .remove && facts.isMeant)
                            case .stream: #expect(act == .rewrite)
                            default:
                                #expect(kind == .regular && act != .create)
                                #expect(use == .nobody && facts.isMeant && !facts.isProtected)
                                #expect(lock == .free || lock == .missing)
                                if lock == .missing { #expect(facts.isOwn || act == .exchange || act == .rewrite) }
                                if facts.isOwn { #expect(act == .remove || act == .exchange) }
                            }
                        }
                    }
                }
            }
        }
        #expect(count == 4200 && allowed > 0)
    }

    @Test func writesWholeFilesTheWayThatLosesNothing() {
        func way(_ kind: FileFacts.Kind, names: Int = 1, keepsOwner: Bool = true, descriptor: Int32? = nil) -> WriteWay
        {
            WriteWay(kind, names: names, keepsOwner: keepsOwner, descriptor: descriptor)
        }
        #expect(way(.absent) == .exchange)
        #expect(way(.regular) == .exchange)
        #expect(way(.regular, names: 2) == .inPlace)
        // /proc/self/fd/N of a file that has lost its name.
        #expect(way(.regular, names: 0) == .inPlace)
        #expect(way(.regular, keepsOwner: false) == .inPlace)
        #expect(way(.stream) == .inPlace)
        #expect(way(.regular, descriptor: 1) == .append(descriptor: 1))
    }

    @Test func saysWhyNothingWasDone() {
        let texts = [
            FileRefusal.readHere("clip"), .writtenElsewhere, .noLocks, .isProtected, .unknown(EMFILE), .failed(ENOSPC),
            .noReader, .changed,
        ].map { $0.fault("a.mp4").description }
        #expect(
            texts == [
                "'a.mp4' is being read by 'clip' of this run. Name another file.",
                "'a.mp4' is being written by another program. Wait for that program, or name another file.",
                "'a.mp4' is on a file system without locks, so it is unknown whether another program uses it."
                    + " Remove the file yourself, or name a file on another file system.",
                "'a.mp4' is write-protected. Make it writable (chmod u+w), or name another file.",
                "framehost cannot find out whether 'a.mp4' is in use: Too many open files. Raise the limit of open files (ulimit -n).",
                "'a.mp4' cannot be written: No space left on device. Free some space, or name a file on another disk.",
                "no program reads the pipe 'a.mp4'. First start the program that reads it.",
                "another program has created, replaced or removed 'a.mp4' in the meantime. Let no other program change files that a run uses.",
            ])
    }
}
