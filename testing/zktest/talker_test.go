package zktest_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/docent-go/docent/internal/must"
)

// A talker is a process in a namespace, which sends or receives words.
type talker struct {
	stdin io.Writer
	lines *bufio.Reader
}

// wordPort is where those who hear are told.
const wordPort = "7000"

// receives is a child that prints each datagram it gets.
func receives() {
	conn, err := net.ListenPacket("udp4", ":"+wordPort)
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	for buf := make([]byte, 1<<10); ; {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			panic(err)
		}
		fmt.Println(string(buf[:n]))
	}
}

// says is a child that sends datagrams: each line of its input is an address and a word.
func says() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		to, word, _ := strings.Cut(lines.Text(), " ")
		conn, err := net.Dial("udp4", net.JoinHostPort(to, wordPort))
		if err != nil {
			panic(err)
		}
		if _, err := io.WriteString(conn, word); err != nil {
			panic(err)
		}
		fmt.Println("said")
		_ = conn.Close()
	}
}

func (p *talker) expect(t testing.TB, want string) {
	t.Helper()
	if got, err := p.lines.ReadString('\n'); got != want+"\n" {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func (p *talker) say(t testing.TB, to, word string) {
	t.Helper()
	_, err := fmt.Fprintln(p.stdin, to, word)
	must.OK(t, err)
	p.expect(t, "said")
}
