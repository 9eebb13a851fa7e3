package zktest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// A peer is a member of an ensemble as one of its members knows it.
type peer struct {
	id               int
	host             string
	quorum, election int // ports
	observer         bool
}

// A layout is everything that makes up one server's command line and files. It
// never changes once written: a restart uses the same.
type layout struct {
	dir  string // the server's own; holds all of the below
	root string // what goes when the process that started the server dies
	id   int    // the server's own number among the place's peers; 0 without peers
	place
}

func (l layout) dataDir() string { return filepath.Join(l.dir, "data") }
func (l layout) logFile() string { return filepath.Join(l.dir, "server.log") }
func (l layout) address() string { return net.JoinHostPort(l.host, strconv.Itoa(l.port)) }

func (l layout) file(name string) string { return filepath.Join(l.dir, name) }

// observerPort is where observer masters listen, each at an address of its own.
const observerPort = 2191

// localhost is where servers listen that have no network of their own.
const localhost = "127.0.0.1"

func loopback(port int) string { return net.JoinHostPort(localhost, strconv.Itoa(port)) }

// millis writes a duration as ZooKeeper's configuration wants it.
func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// write makes the directories and files that the server reads at its start.
func (l layout) write(cfg config) error {
	if err := os.MkdirAll(l.dataDir(), 0o700); err != nil {
		return err
	}
	files := map[string]string{
		l.file("zoo.cfg"):          l.configText(cfg),
		l.file("logback.xml"):      fmt.Sprintf(logbackText, cfg.logLevel),
		l.file("log4j.properties"): fmt.Sprintf(log4jText, cfg.logLevel),
	}
	if l.id > 0 {
		files[filepath.Join(l.dataDir(), "myid")] = strconv.Itoa(l.id) + "\n"
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if len(cfg.sequences) > 0 {
		return writeSequences(l.dataDir(), cfg.sequences)
	}
	return nil
}

func (l layout) configText(cfg config) string {
	settings := []setting{
		{"dataDir", l.dataDir()},
		{"clientPort", strconv.Itoa(l.port)},
		{"clientPortAddress", l.host},
		{"tickTime", millis(cfg.tick)},
		{"minSessionTimeout", millis(cfg.minSession)},
		{"maxSessionTimeout", millis(cfg.maxSession)},
		{"maxClientCnxns", "0"},
		{"admin.enableServer", "false"},
		{"4lw.commands.whitelist", "*"},
		{"extendedTypesEnabled", "true"}, // TTL nodes
	}
	if len(l.peers) > 0 {
		settings = append(settings,
			setting{"syncLimit", strconv.Itoa(cfg.syncLimit)},
			setting{"initLimit", strconv.Itoa(max(cfg.syncLimit, DefaultSyncLimit))})
	}
	for _, p := range l.peers {
		address := fmt.Sprintf("%s:%d:%d", p.host, p.quorum, p.election)
		if p.observer {
			address += ":observer"
			if p.id == l.id {
				settings = append(settings, setting{"peerType", "observer"})
			}
		}
		settings = append(settings, setting{"server." + strconv.Itoa(p.id), address})
	}
	if cfg.observerMasters && len(l.peers) > 0 {
		settings = append(settings, setting{"observerMasterPort", strconv.Itoa(observerPort)})
	}
	var text strings.Builder
	for _, s := range slices.Concat(settings, cfg.settings) {
		fmt.Fprintf(&text, "%s=%s\n", s.key, escaped(s.value))
	}
	return text.String()
}

// escaped returns the value as Java's Properties read it, which take bytes for ISO 8859-1.
func escaped(value string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(value)) {
		if unit == '\\' || unit < ' ' || unit > '~' {
			fmt.Fprintf(&b, "\\u%04x", unit)
		} else {
			b.WriteByte(byte(unit))
		}
	}
	return b.String()
}

// command returns the server's command line.
func (l layout) command(in install, cfg config) []string {
	args := []string{
		in.java,
		// A quick start and a small process matter more to a test than peak speed.
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData",
		"-XX:+ExitOnOutOfMemoryError",
		"-Djava.net.preferIPv4Stack=true",
		"-Dzookeeper.jmx.log4j.disable=true",
		"-Dznode.container.checkIntervalMs=" + millis(cfg.containerInterval),
		"-Dzookeeper.electionPortBindRetry=1", // a taken port is answered with another one
		"-Dlogback.configurationFile=" + l.file("logback.xml"),
		"-Dlog4j.configuration=file:" + l.file("log4j.properties"),
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=" + cfg.logLevel,
		"-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
	}
	if len(cfg.sequences) > 0 {
		args = append(args, "-Dzookeeper.snapshot.trust.empty=true") // there is a log alone
	}
	if !cfg.fsync {
		args = append(args, "-Dzookeeper.forceSync=no", "-Dzookeeper.preAllocSize=64")
	}
	return slices.Concat(l.enter, args, cfg.jvmFlags, []string{
		"-cp", strings.Join(in.classPath, string(os.PathListSeparator)),
		"org.apache.zookeeper.server.quorum.QuorumPeerMain",
		l.file("zoo.cfg"),
	})
}

// Backends of slf4j that releases of ZooKeeper bring along: logback since 3.8,
// log4j before it.
const (
	logbackText = `<configuration>
  <appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%%d{HH:mm:ss.SSS} [%%t] %%-5p %%c{1} - %%m%%n</pattern></encoder>
  </appender>
  <root level="%s"><appender-ref ref="OUT"/></root>
</configuration>
`
	log4jText = `log4j.rootLogger=%s, OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%%d{HH:mm:ss.SSS} [%%t] %%-5p %%c{1} - %%m%%n
`
)
