// SPDX-License-Identifier: Apache-2.0

#if FRAMEHOST_TESTABLE
    import Glibc

    /// Tests replace every sentence by `x` with the variable FRAMEHOST_SENTENCES. What the program then still does, it
    /// does not do by a sentence (docs/design/046-faults.md). Programs for users do not have this.
    private let isReplaced = getenv("FRAMEHOST_SENTENCES") != nil

    extension String {
        /// This sentence of a fault or an event, as it is kept.
        var sentence: String { isReplaced && !isEmpty ? "x" : self }
    }
#else
    extension String {
        /// This sentence of a fault or an event, as it is kept.
        var sentence: String { self }
    }
#endif
