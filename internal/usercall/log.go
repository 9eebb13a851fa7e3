package usercall

import (
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Unblocked returns a logger that writes to log's sink on a goroutine of q. If the sink blocks, the
// logger's callers do not: up to a thousand lines wait for it, and further lines are dropped. Once the
// sink has gone on, a line says how many.
func Unblocked(log *zap.Logger, q *Queue) *zap.Logger {
	return log.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
		return queuedCore{Core: core, queue: q, dropped: new(atomic.Int64)}
	}))
}

// A queuedCore writes the lines of another core on its queue's goroutine.
type queuedCore struct {
	zapcore.Core
	queue   *Queue
	dropped *atomic.Int64
}

// With is part of [zapcore.Core], as the following methods are.
func (c queuedCore) With(fields []zapcore.Field) zapcore.Core {
	c.Core = c.Core.With(fields)
	return c
}

func (c queuedCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c queuedCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	written := c.queue.Do(func() {
		c.write(entry, fields)
		if n := c.dropped.Swap(0); n > 0 {
			lines := zap.Int64("lines", n)
			c.write(zapcore.Entry{Level: zap.WarnLevel, Time: time.Now(), LoggerName: entry.LoggerName, Message: "log lines were dropped, because the sink blocked"}, []zapcore.Field{lines})
		}
	})
	if !written {
		c.dropped.Add(1)
	}
	return nil // an error of the sink goes to standard error, as zap's own do
}

func (c queuedCore) write(entry zapcore.Entry, fields []zapcore.Field) {
	if checked := c.Core.Check(entry, nil); checked != nil {
		checked.ErrorOutput = os.Stderr
		checked.Write(fields...)
	}
}
