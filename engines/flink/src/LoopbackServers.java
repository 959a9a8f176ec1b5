import static net.bytebuddy.matcher.ElementMatchers.isConstructor;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.security.ProtectionDomain;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.pool.TypePool;

/**
 * A Java agent: Beam's servers, which listen on all network interfaces whatever they are told, listen on loopback only.
 */
public final class LoopbackServers implements ClassFileTransformer {
  public static void premain(String arguments, Instrumentation instrumentation) {
    instrumentation.addTransformer(new LoopbackServers());
  }

  @Override
  public byte[] transform(
      ClassLoader loader, String path, Class<?> loaded, ProtectionDomain domain, byte[] code) {
    if (path == null || !path.endsWith("/io/grpc/netty/NettyServerBuilder")) {
      return null;
    }
    String name = path.replace('/', '.');
    ClassFileLocator classes =
        new ClassFileLocator.Compound(
            ClassFileLocator.Simple.of(name, code), ClassFileLocator.ForClassLoader.of(loader));
    TypeDescription builder = TypePool.Default.of(classes).describe(name).resolve();
    return new ByteBuddy()
        .redefine(builder, classes)
        .visit(Advice.to(Loopback.class).on(isConstructor().and(takesArgument(0, SocketAddress.class))))
        .make()
        .getBytes();
  }

  /** Runs inside the constructor. */
  public static final class Loopback {
    @Advice.OnMethodEnter
    public static void enter(@Advice.Argument(value = 0, readOnly = false) SocketAddress address) {
      if (address instanceof InetSocketAddress && ((InetSocketAddress) address).getAddress().isAnyLocalAddress()) {
        address = new InetSocketAddress(InetAddress.getLoopbackAddress(), ((InetSocketAddress) address).getPort());
      }
    }
  }
}
