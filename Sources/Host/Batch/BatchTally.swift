// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// What became of a unit.
struct BatchResult: Sendable {
    enum State: String, Sendable {
        /// This batch made the unit.
        case made
        /// The output was there already.
        case present
        /// Another batch made the unit meanwhile.
        case madeElsewhere = "made elsewhere"
        case setAside = "set aside"
        /// Somebody gave the input up (`--give-up`), and the input has not changed since.
        case givenUp = "given up"
    }

    var unit: Int
    var state: State
    /// What was read, and what came out.
    var input: String
    var output: String
    var frames = 0
    var seconds = 0.0
    var mediaSeconds = 0.0
    var bytes: Int64 = 0
    var attempts = 0
    /// Why the unit was set aside or given up.
    var error = ""
    /// What the output lacks of its input (`--accept-damaged`); empty for a whole input.
    var damage = ""
    /// What the sources said of their inputs.
    var account: JSONNode = .object([])
    var warnings: [String] = []
    /// Why an older output was made again.
    var replaced = ""
}

/// Figures of a batch, and the news since ``takeNews()`` was called. [any thread]
final class BatchTally: Sendable {
    struct Figures: Sendable {
        var made = 0
        var present = 0
        var madeElsewhere = 0
        var setAside = 0
        var givenUp = 0
        /// How many of the outputs that are there were made of damaged inputs.
        var damaged = 0
        /// Failed attempts after which the unit was, or will be, tried again.
        var failedAttempts = 0
        /// Frames of finished and of running workers.
        var frames = 0
        var mediaSeconds = 0.0

        var finished: Int { made + present + madeElsewhere + setAside + givenUp }

        /// The exit status of a batch of `count` files.
        func status(of count: Int) -> Int32 { setAside == 0 && damaged == 0 && finished == count ? 0 : 1 }
    }

    /// News for people, in the order in which they happened.
    enum News: Sendable {
        case result(BatchResult)
        case note(String, isWarning: Bool)
    }

    private struct State {
        var figures = Figures()
        var news: [News] = []
        var results: [BatchResult] = []
    }

    private let keepsResults: Bool
    private let state = Mutex(State())
    private let stopping = Atomic<Bool>(false)
    private let running = Atomic<Int>(0)

    init(keepsResults: Bool) { self.keepsResults = keepsResults }

    /// Asks all slots to end.
    func stop() { stopping.store(true, ordering: .relaxed) }
    var isStopping: Bool { stopping.load(ordering: .relaxed) }

    /// A slot begins, or ends. ``slots`` is the number of slots that have begun and not ended.
    func slotBegins() { running.add(1, ordering: .relaxed) }
    func slotEnds() { running.subtract(1, ordering: .relaxed) }
    var slots: Int { running.load(ordering: .relaxed) }

    func add(frames: Int) { state.withLock { $0.figures.frames += frames } }

    func add(_ result: BatchResult) {
        state.withLock { state in
            switch result.state {
            case .made: state.figures.made += 1
            case .present: state.figures.present += 1
            case .madeElsewhere: state.figures.madeElsewhere += 1
            case .setAside: state.figures.setAside += 1
            case .givenUp: state.figures.givenUp += 1
            }
            if !result.damage.isEmpty { state.figures.damaged += 1 }
            if result.state == .made { state.figures.mediaSeconds += result.mediaSeconds }
            // Outputs that are there already are counted and not listed: of a million names, most may be there.
            if result.state != .present || !result.damage.isEmpty { state.news.append(.result(result)) }
            if keepsResults { state.results.append(result) }
        }
    }

    /// Counts a failed attempt. Its frames do not count.
    func attemptFailed(_ text: String, frames: Int) {
        state.withLock { state in
            state.figures.failedAttempts += 1
            state.figures.frames -= frames
            state.news.append(.note(text, isWarning: true))
        }
    }

    func warn(_ text: String) { state.withLock { $0.news.append(.note(text, isWarning: true)) } }

    func note(_ text: String) { state.withLock { $0.news.append(.note(text, isWarning: false)) } }

    var figures: Figures { state.withLock { $0.figures } }

    func takeNews() -> [News] {
        state.withLock { state in
            let news = state.news
            state.news = []
            return news
        }
    }

    /// The results, in the order of the list.
    var results: [BatchResult] { state.withLock { $0.results }.sorted { $0.unit < $1.unit } }
}
