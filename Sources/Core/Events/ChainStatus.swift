// SPDX-License-Identifier: Apache-2.0

/// What a chain and its stages are doing, in words that people and programs share, and whether the chain does its work.
public struct ChainStatus: Sendable, Equatable {
    /// What a chain or a stage is doing.
    public enum State: String, Sendable, CaseIterable {
        /// It does not run.
        case stopped
        /// It is being started.
        case starting
        /// Frames flow.
        case streaming
        /// Frames flow, and somebody looks at them.
        case rendering
        /// It is paused.
        case paused
        /// The chain waits for something that is away: a camera, a server, a stage that is to be started anew.
        case recovering
        /// The sources have ended, and what is under way finishes.
        case draining
        /// All stages have ended, and the jobs that they left are under way.
        case finishing
        /// It has failed.
        case failed
    }

    /// What one stage is doing.
    public struct Stage: Sendable, Equatable {
        /// The stage's id in the chain file.
        public var id: String
        /// What it is doing.
        public var state: State
        /// Why it recovers; empty in other states.
        public var reason: String

        /// Says what a stage is doing.
        public init(id: String, state: State, reason: String = "") {
            self.id = id
            self.state = state
            self.reason = reason
        }
    }

    /// What the chain is doing.
    public var state: State
    /// What its stages are doing.
    public var stages: [Stage]
    /// What keeps the chain from doing its work, a sentence each.
    public var problems: [String]
    /// The ``problems`` that are about a camera or server that is away. It has not been there yet, or it was lost
    /// and nothing stands in for it. Starting the chain anew would not bring it.
    public var missing: [String] = []
    /// The ``problems`` of stages that work, but worse than they were asked to (``StageContext/impairment``). Starting the
    /// chain anew would not help.
    public var impaired: [String] = []

    /// Says what a chain is doing, or several chains together.
    public init(state: State, stages: [Stage], problems: [String], missing: [String] = [], impaired: [String] = []) {
        self.state = state
        self.stages = stages
        self.problems = problems
        self.missing = missing
        self.impaired = impaired
    }

    /// Whether the chain does its work.
    public var isHealthy: Bool { problems.isEmpty }
    /// Whether the chain does what it can: its only problems are those that are ``missing`` or ``impaired``. A watchdog
    /// uses this.
    public var isAtWork: Bool { problems.count == missing.count + impaired.count }

    /// The status as JSON, for programs.
    public var json: JSONNode {
        .object([
            ("state", .string(state.rawValue)), ("healthy", .bool(isHealthy)),
            ("problems", .array(problems.map { .string($0) })),
            (
                "stages",
                .array(
                    stages.map { stage in
                        .object(
                            [("id", .string(stage.id)), ("state", .string(stage.state.rawValue))]
                                + (stage.reason.isEmpty ? [] : [("reason", .string(stage.reason))]))
                    })
            ),
        ])
    }
}
